import { withAdmin, withRest } from '../clients.js';
import type { Context } from '../context.js';
import { orMissing } from '../output/format.js';
import { printProperties } from '../output/print.js';

export default async function authWhoami(context: Context): Promise<void> {
  const { email, user, organization } = await identity(context);
  printProperties(
    context,
    [
      ['Email', orMissing(email)],
      ['User', orMissing(user)],
      ['Organization', orMissing(organization)],
    ],
    () => ({ user_urn: user ?? null, org_urn: organization ?? null, email: email ?? null }),
  );
}

interface Who {
  readonly email: string | undefined;
  readonly user: string | undefined;
  readonly organization: string | undefined;
}

/** From the token, where the service works with such; else from what it knows of the API key. */
async function identity(context: Context): Promise<Who> {
  try {
    const { email, userUrn, orgUrn } = await withRest(context, 'asking the service', (rest) => rest.whoami());
    return { email, user: userUrn, organization: orgUrn };
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'invalid_input') throw error;
    const { details } = await withAdmin(context, 'asking the service', (admin) => admin.getApiKey());
    return { email: details?.userDetails?.email, user: undefined, organization: details?.orgDetails?.name };
  }
}
