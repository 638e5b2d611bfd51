import { Observable } from 'rxjs';
import { findGate } from '../operators/pressure/shared/backpressureEvents.js';
import { oneTime } from './internal/oneTime.js';
import { RowWalk } from './internal/RowWalk.js';

/**
 * The values of an iterable, as fast as demand allows; it may be endless.
 *
 * ```ts
 * fromIterable(new Set(datums)).pipe(repeatEpochs(), batch({ size: 32 }), train(trainer, options))
 * ```
 * RxJS's `from` emits all values at once, whatever is downstream. This one stops between two values while the
 * bounded operator downstream is full. Without one it emits synchronously, as `from` does. A throw of the iterator is the
 * stream's error; unsubscribing returns the iterator. A generator can be read only once: a second subscribe is an error,
 * and not an empty stream. Give a function that makes one. Holds nothing.
 *
 * @see fromArray
 * @see fromAsyncIterable
 */
export function fromIterable<T>(values: Iterable<T> | (() => Iterable<T>)): Observable<T> {
  const open = oneTime('fromIterable', values, Symbol.iterator);
  return new Observable((subscriber) => {
    const gate = findGate('fromIterable');
    new RowWalk<T>(subscriber, gate, () => subscriber.complete()).walk(open());
  });
}
