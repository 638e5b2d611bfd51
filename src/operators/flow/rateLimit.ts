import { defer, map, type MonoTypeOperatorFunction, of, tap } from 'rxjs';
import { longTimer } from '../../support/longTimer.js';
import { concatMapAhead } from './concatMapAhead.js';
import { TokenBucket, type TokenBucketOptions } from './TokenBucket.js';

/** Options of `rateLimit`: a rate for each subscription, or a `bucket` that several share. */
export type RateLimitOptions<T> = {
  /** What a value takes from the bucket, its tokens for example: a finite number ≥ 0. Default 1. */
  readonly weight?: (value: T) => number;
} & (
  | (TokenBucketOptions & {
      /** Not together with a rate. */
      readonly bucket?: never;
    })
  | {
      /** The allowance that all share who are given it. */
      readonly bucket: TokenBucket;
    }
);

/**
 * Passes values on no faster than a rate, in order: a token bucket.
 *
 * ```
 * source    (abcd|)                limit 1, perMs 5, burst 2
 * result    (ab)-c----(d|)
 * ```
 * ```ts
 * prompts.pipe(rateLimit({ limit: 90_000, perMs: 60_000, weight: ({ length }) => length }), mergeMap(askForeignApi))   // by tokens
 * ```
 * Errors of the source come at once, as does a throw of `weight`; it completes when the last value is out. Unsubscribing
 * stops the wait, and gives back what the waiting value took. Values that wait are queued, and its {@link Gate} is closed
 * meanwhile. Takes nothing while the gate downstream is closed.
 */
export function rateLimit<T>(options: RateLimitOptions<T>): MonoTypeOperatorFunction<T> {
  const { weight = () => 1 } = options;
  const make = () => options.bucket ?? new TokenBucket(options);
  if (options.bucket === undefined) make();
  return (source) =>
    defer(() => {
      const bucket = make();
      return source.pipe(
        concatMapAhead(
          (value) => {
            const price = weight(value);
            const delayMs = bucket.reserve(price);
            if (delayMs === 0) return of(value);
            return longTimer(delayMs, bucket.scheduler).pipe(
              map(() => value),
              tap({ unsubscribe: () => bucket.giveBack(price) }),
            );
          },
          { ahead: 0 },
        ),
      );
    });
}
