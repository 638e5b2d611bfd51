import { Observable } from 'rxjs';
import { withGate } from '../operators/pressure/gate.js';
import { findGate } from '../operators/pressure/shared/backpressureEvents.js';
import { RowWalk } from './internal/RowWalk.js';

/** Options of `fromRowBatches`. */
export interface RowBatchesOptions {
  /** What `backpressure$` calls the source. Default 'fromRowBatches'. */
  readonly name?: string;
}

/**
 * The rows of an async iterable of batches, as fast as demand allows: what the file sources are made of, for your own.
 *
 * ```ts
 * fromRowBatches(async function* () {
 *   for await (const page of database.pages()) yield page.rows;
 * })
 * ```
 * `open` is called on subscribe. Rows are handed on one by one while the gate downstream is open, and the next batch is
 * asked for only when all rows of the last one are out. A throw of the iterable, or of a batch while it is walked
 * through, is the stream's error; so is a batch that cannot be iterated. Unsubscribing aborts the signal and returns both
 * the iterator of the batch it is in and the iterator of batches. Holds one batch.
 *
 * @see docs/backpressure.md
 */
export function fromRowBatches<T>(
  open: (signal: AbortSignal) => AsyncIterable<Iterable<T>>,
  { name = 'fromRowBatches' }: RowBatchesOptions = {},
): Observable<T> {
  return new Observable((subscriber) => {
    const gate = findGate(name);
    const abort = new AbortController();
    const batches = open(abort.signal)[Symbol.asyncIterator]();
    const fail = (error: unknown) => withGate(gate, () => subscriber.error(error));
    const read = () => {
      batches
        .next()
        .then((batch) => {
          if (subscriber.closed) return;
          if (batch.done === true) withGate(gate, () => subscriber.complete());
          else rows.walk(batch.value);
        }, fail)
        .catch(fail);
    };
    const rows = new RowWalk<T>(subscriber, gate, read);

    read();
    return () => {
      abort.abort();
      // An iterable that fails while it is put away has nobody left to tell.
      batches.return?.().then(undefined, () => {});
    };
  });
}
