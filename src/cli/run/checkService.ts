import { readFile } from 'node:fs/promises';
import type { ServiceClient } from '../../client/index.js';
import type { ServerProfile } from '../../conformance/profile.js';
import type { LossFnType } from '../../wire/training.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import { waitFor } from '../terminal/waitFor.js';

/**
 * Says before a run what will not work at this service, by its list of models and by the profile that `TINKER_PROFILE` names. A model that is
 * not listed is tried all the same: some servers do not list all their models. A feature that the profile lists as missing ends the command.
 */
export async function checkService(
  context: Context,
  service: ServiceClient,
  baseModel: string | undefined,
  loss: LossFnType,
): Promise<void> {
  const { checkUse } = await import('../../conformance/profile.js');
  const profile = await givenProfile();
  const use = { losses: [loss], ...(baseModel === undefined ? {} : { baseModel }) };
  const problems = await waitFor(context, 'asking the service', checkUse(service, use, profile), service.events$);
  for (const { feature, kind, text } of problems) {
    if (kind === 'absent' && feature !== 'model')
      throw new CliError(text, { details: 'TINKER_PROFILE names this profile; without it the run is tried.' });
    note(context, `Warning: ${text}`);
  }
}

async function givenProfile(): Promise<ServerProfile | undefined> {
  const file = process.env['TINKER_PROFILE'] ?? '';
  if (file === '') return undefined;
  const { readProfile } = await import('../../conformance/profile.js');
  try {
    return readProfile(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    throw new CliError(`TINKER_PROFILE: ${file} cannot be used: ${(error as Error).message}`);
  }
}
