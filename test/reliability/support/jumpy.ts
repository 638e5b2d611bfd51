import type { SchedulerAction, SchedulerLike } from 'rxjs';
import { seededRandom } from '../../../src/support/random.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * A scheduler whose clock is set twice a minute or so, by up to three hours to and fro, as a machine's is that sleeps or is told the time. Its
 * timers are right all the same.
 */
export function jumpy(inner: SchedulerLike, seed: number, onJump: () => void): SchedulerLike {
  const random = seededRandom(seed);
  let offsetMs = 0;
  let nextMs = inner.now() + random() * MINUTE_MS;
  return {
    now: () => {
      const nowMs = inner.now();
      if (nowMs > nextMs) {
        nextMs = nowMs + random() * MINUTE_MS;
        offsetMs += (random() * 2 - 1) * 3 * HOUR_MS;
        onJump();
      }
      return nowMs + offsetMs;
    },
    schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delayMs = 0, state?: T) =>
      inner.schedule(work, delayMs, state),
  };
}
