import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { orMissing } from '../format.js';
import { printProperties } from '../print.js';

export default async function authWhoami(context: Context): Promise<void> {
  const { email, userUrn, orgUrn } = await withRest(context, 'asking the service', (rest) => rest.whoami());
  printProperties(
    context,
    [
      ['Email', orMissing(email)],
      ['User', userUrn],
      ['Organization', orgUrn],
    ],
    () => ({ user_urn: userUrn, org_urn: orgUrn, email: email ?? null }),
  );
}
