import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { oneTime } from './internal/oneTime.js';

/**
 * The values of an async iterable, each asked for when there is demand for it.
 *
 * ```ts
 * fromAsyncIterable(async function* (signal) {
 *   for await (const row of database.rows({ signal })) yield row;
 * })
 * ```
 * RxJS's `from` keeps pulling, whatever is downstream; this one asks for no value while the bounded operator downstream is
 * full. A throw of the iterable is the stream's error. Unsubscribing aborts the signal and returns the iterator. A
 * generator can be read only once: a second subscribe is an error, and not an empty stream. Give the function that makes
 * it, as above. Holds one value.
 *
 * @see fromRowBatches for many rows at a time, which is faster
 */
export function fromAsyncIterable<T>(
  values: AsyncIterable<T> | ((signal: AbortSignal) => AsyncIterable<T>),
): Observable<T> {
  const open = oneTime('fromAsyncIterable', values, Symbol.asyncIterator);
  return fromRowBatches((signal) => inOnes(open(signal)), { name: 'fromAsyncIterable' });
}

/** Not a generator: its `return` would wait for the value that is asked for, and that may never come. */
function inOnes<T>(values: AsyncIterable<T>): AsyncIterable<readonly T[]> {
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = values[Symbol.asyncIterator]();
      return {
        next: async () => {
          const result = await iterator.next();
          return result.done === true ? { done: true, value: undefined } : { done: false, value: [result.value] };
        },
        return: async () => {
          await iterator.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
