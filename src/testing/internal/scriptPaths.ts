import type { RequestType } from '../../client/events.js';
import { ENDPOINTS } from '../fakeEndpoints.js';

/** Paths that clients ask for and that the fake service does not know. */
const OTHERS = [
  'audit',
  'auth/apikey/me',
  'auth/token',
  'checkpoints',
  'copy_weights',
  'external_weights_upload_finish',
  'external_weights_upload_start',
  'sessions',
  'training_runs',
] as const;
/** Paths that continue with an id or a name. */
const ROOTS = ['billing', 'checkpoints', 'samplers', 'sessions', 'training_runs'] as const;

/** What a script may be about: a path of the service below `/api/v1/`, or the polls for one kind of work. */
export type ScriptPath =
  | keyof typeof ENDPOINTS
  | (typeof OTHERS)[number]
  | `${(typeof ROOTS)[number]}/${string}`
  | `retrieve_future ${RequestType}`
  | 'retrieve_futures Sample';

/** @throws RangeError for a path that no client asks for: such an entry would be ignored. */
export function checkScriptPaths(paths: readonly string[]): void {
  const known: readonly string[] = [...Object.keys(ENDPOINTS), ...OTHERS];
  for (const path of paths) {
    const [asked = ''] = path.split(' ');
    if (known.includes(asked) || ROOTS.some((root) => asked.startsWith(`${root}/`))) continue;
    const snake = asked.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const advice = known.includes(snake) ? `did you mean ${snake}?` : `there are ${known.toSorted().join(', ')}`;
    throw new RangeError(`script: no client asks for ${path}; ${advice}`);
  }
}
