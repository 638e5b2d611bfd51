import { asyncScheduler, defer, map, type OperatorFunction, type SchedulerLike } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';

/** Options of `tokensPerSecond`. */
export interface TokensPerSecondOptions<T> {
  /** The tokens of a value. Default: its `tokens`. */
  readonly tokens?: (value: T) => number;
  /** Over how many values the rate is taken: an integer ≥ 1. Default 10. */
  readonly window?: number;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Adds `tokensPerSecond` to each value: the tokens of the last values by the time they took.
 *
 * ```
 * source    -a---b---|             1000 tokens each, 4 ms apart
 * result    -A---B---|             1,000,000 and 400,000 a second, from subscribe on
 * ```
 * Time is taken when values arrive; 0 while none has passed. Errors, also throws of `tokens`, and completion pass.
 * Holds `window` pairs of numbers.
 */
export function tokensPerSecond<T extends object>({
  tokens = (value) => (value as { readonly tokens?: number }).tokens ?? 0,
  window = 10,
  scheduler = asyncScheduler,
}: TokensPerSecondOptions<T> = {}): OperatorFunction<T, T & { readonly tokensPerSecond: number }> {
  checkIntegers({ window }, 1);
  return (source) =>
    defer(() => {
      // The time before the first of the window's values is where its clock starts.
      const times = [scheduler.now()];
      const counts: number[] = [];
      return source.pipe(
        map((value) => {
          times.push(scheduler.now());
          counts.push(tokens(value));
          if (counts.length > window) {
            times.shift();
            counts.shift();
          }
          const elapsedMs = times.at(-1)! - times[0]!;
          const sum = counts.reduce((total, count) => total + count, 0);
          return { ...value, tokensPerSecond: elapsedMs > 0 ? (sum * 1000) / elapsedMs : 0 };
        }),
      );
    });
}
