import { ApiKeyResponse } from '../../wire/admin.js';
import { askSecret } from '../terminal/askSecret.js';
import { CliError } from '../CliError.js';
import { quiet } from '../clients.js';
import type { Context } from '../context.js';
import { explain } from '../explain.js';
import { newKeyPage } from './keyPages.js';
import { waitFor } from '../terminal/waitFor.js';

/** Asks for a key, has the service check it, and stores it where the Python SDK finds it too. */
export default async function authLogin(context: Context): Promise<void> {
  const { AdminClient } = await import('../../client/index.js');
  const { CredentialStore } = await import('../../transport/credentials.js');
  const store = new CredentialStore();
  if (store.defaultKey() !== undefined)
    throw new CliError('Already logged in', { details: "Run 'tinker-rx auth logout' before logging in again." });
  context.stderr.write(`Create an API key: ${newKeyPage()}\n\n`);
  const key = (await askSecret(context, 'Paste your API key: ')).trim();
  if (key === '') throw new CliError('The API key must not be empty');

  let checked: ApiKeyResponse;
  try {
    const { baseUrl } = context;
    const admin = new AdminClient({ apiKey: key, ...(baseUrl === undefined ? {} : { baseUrl }), ...quiet() });
    checked = await waitFor(context, 'checking the key', admin.getApiKey(), admin.events$);
    await admin.close();
  } catch (error) {
    const { message, details, exitCode } = explain(error);
    throw new CliError('Could not validate the API key', {
      details: [message, details ?? ''].join('\n').trim(),
      exitCode,
    });
  }
  const { keyId = 'default', name = 'key', note } = checked;
  const { details } = ApiKeyResponse.encode(checked) as { readonly details?: Record<string, unknown> };
  const { userDetails, orgDetails } = checked.details ?? {};
  store.addKey(String(keyId), {
    type: 'manual',
    key,
    name,
    ...(note === undefined ? {} : { note }),
    // The Python SDK refuses a file whose details are not complete.
    ...(details === undefined || userDetails === undefined || orgDetails === undefined ? {} : { details }),
  });
  store.setDefault(String(keyId));
  const who =
    userDetails === undefined
      ? ''
      : ` as ${userDetails.email}${orgDetails === undefined ? '' : ` (${orgDetails.name})`}`;
  context.stdout.write(`Logged in${who}. Stored API key '${name}' as the default credential.\n`);
}
