import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { sessionJson } from '../output/jsonForm.js';
import { printProperties } from '../output/print.js';

export default async function sessionInfo(context: Context, _: object, sessionId: string): Promise<void> {
  const session = await withRest(context, 'asking for the session', (rest) => rest.getSession(sessionId));
  const several = (name: string, values: readonly string[]): [string, string][] =>
    values.length === 0 ? [[name, 'None']] : values.map((value, place) => [place === 0 ? name : '', value]);
  printProperties(
    context,
    [
      ['Session ID', sessionId],
      ['Name', session.displayName],
      ...several('Training Runs', session.trainingRunIds),
      ...several('Samplers', session.samplerIds),
      ...Object.entries(session.userMetadata ?? {}).map(([key, value]) => [`Metadata ${key}`, value] as const),
    ],
    () => ({ session_id: sessionId, ...sessionJson(session) }),
  );
}
