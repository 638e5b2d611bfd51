import type { SchedulerAction, SchedulerLike } from 'rxjs';
import { seededRandom } from '../../../src/local/dials/random.js';

const HOUR_MS = 3_600_000;

/**
 * A scheduler whose clock is set now and then, by up to three hours to and fro, as a machine's is that sleeps or is told the time. Its
 * timers are right all the same.
 */
export function jumpy(inner: SchedulerLike, seed: number, onJump: () => void): SchedulerLike {
  const random = seededRandom(seed);
  let offsetMs = 0;
  return {
    now: () => {
      if (random() < 0.005) {
        offsetMs += (random() * 2 - 1) * 3 * HOUR_MS;
        onJump();
      }
      return inner.now() + offsetMs;
    },
    schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delayMs = 0, state?: T) =>
      inner.schedule(work, delayMs, state),
  };
}
