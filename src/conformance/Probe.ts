import type { FeatureState } from './profile.js';
import { Refused } from './answers.js';
import type { Prober } from './Prober.js';

export interface Outcome {
  readonly state: FeatureState;
  readonly note?: string;
}

/** Questions to a server, by their names in the profile: `group: what`. */
export type Probes = Readonly<Record<string, (prober: Prober) => Promise<Outcome>>>;

export const yes = (note?: string): Outcome => ({ state: 'yes', ...(note === undefined ? {} : { note }) });
export const no = (note: string): Outcome => ({ state: 'no', note });
export const differs = (note: string): Outcome => ({ state: 'differs', note });

/** Yes where it holds, else what was seen. */
export const holds = (condition: boolean, seen: string): Outcome => (condition ? yes() : differs(seen));

/** Must be refused, and by a client's mistake (4xx, or failed work) rather than by a crash. */
export async function refuses(work: () => Promise<unknown>): Promise<Outcome> {
  try {
    await work();
    return differs('accepted');
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 408) return no('never answered');
    return error.status >= 500 ? no(`crashes: ${error.message}`) : yes();
  }
}

export const close = (a: number, b: number, tolerance = 2e-3): boolean =>
  Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a), Math.abs(b));
