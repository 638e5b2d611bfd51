import { concat, defer, EMPTY, mergeMap, type MonoTypeOperatorFunction, of } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import { seededRandom } from '../../support/random.js';

/** Options of `shuffle`. */
export interface ShuffleOptions {
  /** How many values are held to choose from: an integer ≥ 1. 1 keeps the order. */
  readonly window: number;
  /** An integer; the same seed over the same values gives the same order. */
  readonly seed: number;
}

/**
 * Shuffles within a window: once `window` values are held, each new one sends a random one of those held on its way.
 *
 * ```
 * source    -a-b-c-d-|             window 2, seed 1
 * result    -----a-c-(db|)
 * ```
 * Every subscriber gets the same order; for another order in every epoch give each its own seed with
 * {@link repeatEpochs}. Errors pass at once and drop what is held; completion emits what is held, shuffled.
 * Holds `window` values.
 */
export function shuffle<T>({ window, seed }: ShuffleOptions): MonoTypeOperatorFunction<T> {
  checkIntegers({ window }, 1);
  // Fails at the call, not at the first value.
  seededRandom(seed);
  return (source) =>
    defer(() => {
      const random = seededRandom(seed);
      const held: T[] = [];
      return concat(
        source.pipe(
          mergeMap((value) => {
            if (held.length < window) {
              held.push(value);
              return EMPTY;
            }
            const place = Math.floor(random() * window);
            const chosen = held[place]!;
            held[place] = value;
            return of(chosen);
          }),
        ),
        defer(() => {
          for (let last = held.length - 1; last > 0; last--) {
            const place = Math.floor(random() * (last + 1));
            [held[last], held[place]] = [held[place]!, held[last]!];
          }
          return held;
        }),
      );
    });
}
