import type { ServiceClient } from '../../client/index.js';
import type { LossFnType } from '../../wire/training.js';
import { note, type Context } from '../context.js';
import { waitFor } from '../terminal/waitFor.js';

/**
 * Says before anything is sent what will not work at this service, by its list of models and by a profile of it. A model that is not listed is
 * tried all the same: not every server lists all that it has.
 */
export async function warnOfUse(
  context: Context,
  service: ServiceClient,
  baseModel: string | undefined,
  loss: LossFnType,
): Promise<void> {
  const use = { losses: [loss], ...(baseModel === undefined ? {} : { baseModel }) };
  const problems = await waitFor(context, 'asking the service', service.checkUse(use), service.events$);
  for (const { text } of problems) note(context, `Warning: ${text}`);
}
