import type { FeatureState } from './profile.js';
import { Refused } from './answers.js';
import type { Prober } from './Prober.js';

export interface Outcome {
  readonly state: FeatureState;
  readonly note?: string;
}

/** One question to a server. */
export interface Probe {
  /** `group: what`, also the name in the profile. */
  readonly feature: string;
  readonly run: (prober: Prober) => Promise<Outcome>;
}

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

/** What a probe found; a refusal is a no, in the server's words. */
export async function runProbe({ run }: Probe, prober: Prober): Promise<Outcome> {
  try {
    return await run(prober);
  } catch (error) {
    return no((error as Error).message);
  }
}

export const close = (a: number, b: number, tolerance = 2e-3): boolean =>
  Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a), Math.abs(b));
