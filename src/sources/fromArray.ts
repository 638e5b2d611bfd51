import { Observable } from 'rxjs';
import { findGate } from '../operators/pressure/shared/backpressureEvents.js';
import { RowWalk } from './internal/RowWalk.js';

/**
 * The values of an array, as fast as demand allows: data in memory, for `repeatEpochs` and endless runs.
 *
 * ```ts
 * fromArray(datums).pipe(repeatEpochs(), batch({ size: 32 }), train(trainer, options), take(500))
 * ```
 * RxJS's `from` emits all values at once, whatever is downstream; this one stops between two values while the
 * bounded operator downstream is full. Without one it emits synchronously, as `from` does. Holds nothing but the array.
 */
export function fromArray<T>(values: readonly T[]): Observable<T> {
  const given: unknown = values;
  if (!Array.isArray(given)) throw new TypeError(`values must be an array, got ${typeof values}`);
  return new Observable((subscriber) =>
    new RowWalk<T>(subscriber, findGate('fromArray'), () => subscriber.complete()).walk(values),
  );
}
