import { CliError } from '../CliError.js';
import { quiet } from '../clients.js';
import type { Context } from '../context.js';
import { explain } from '../explain.js';
import { keyPage } from './keyPages.js';
import { waitFor } from '../terminal/waitFor.js';

/** Removes the stored key; one that a program made is deleted on the service too, one that was pasted stays good. */
export default async function authLogout(context: Context): Promise<void> {
  const { CredentialStore } = await import('../../transport/credentials.js');
  const store = new CredentialStore();
  const { default: id, keys } = store.load();
  const record = id === undefined ? undefined : keys[id];
  if (id === undefined || record === undefined)
    throw new CliError('No default credential is stored', {
      details: "There is nothing to log out from. Run 'tinker-rx auth login' to log in.",
    });
  let failure: string | undefined;
  if (record.type === 'generated') {
    try {
      await revoke(context, record.key);
    } catch (error) {
      failure = explain(error).message;
    }
  }
  store.deleteKey(id);
  if (failure !== undefined)
    throw new CliError('Could not delete the API key on the server', {
      details: `${failure}\nRemoved the local credential '${record.name}'.\nDelete the API key here: ${keyPage(id)}`,
    });
  context.stdout.write(
    record.type === 'generated'
      ? `Removed credential '${record.name}' and deleted its API key on the server.\n`
      : `Removed credential '${record.name}'. The API key is still active.\nDelete it here: ${keyPage(id)}\n`,
  );
}

async function revoke(context: Context, apiKey: string): Promise<void> {
  const { AdminClient } = await import('../../client/index.js');
  const { baseUrl } = context;
  const admin = new AdminClient({ apiKey, ...(baseUrl === undefined ? {} : { baseUrl }), ...quiet() });
  await waitFor(context, 'deleting the key', admin.deleteApiKey(), admin.events$);
  await admin.close();
}
