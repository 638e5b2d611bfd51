import { Observable } from 'rxjs';
import { currentGate, withGate } from '../operators/gate.js';

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
 * through, is the stream's error. Unsubscribing aborts the signal and returns the iterator. Holds one batch.
 *
 * @see docs/backpressure.md
 */
export function fromRowBatches<T>(open: (signal: AbortSignal) => AsyncIterable<Iterable<T>>): Observable<T> {
  return new Observable((subscriber) => {
    const gate = currentGate();
    const abort = new AbortController();
    const batches = open(abort.signal)[Symbol.asyncIterator]();
    let rows: Iterator<T> | undefined;
    let stopWaiting: (() => void) | undefined;

    // Everything is emitted under the gate, so that what starts because of a row, or because of the end, finds it too.
    const emit = () => withGate(gate, emitRows);
    const emitRows = () => {
      try {
        while (rows !== undefined && !subscriber.closed) {
          if (gate?.isOpen === false) {
            stopWaiting = gate.onceOpen(emit);
            return;
          }
          const row = rows.next();
          if (row.done === true) rows = undefined;
          else subscriber.next(row.value);
        }
      } catch (error) {
        subscriber.error(error);
      }
      if (!subscriber.closed) read();
    };

    const read = () => {
      batches.next().then(
        (batch) => {
          if (batch.done === true) return withGate(gate, () => subscriber.complete());
          rows = batch.value[Symbol.iterator]();
          emit();
        },
        (error: unknown) => withGate(gate, () => subscriber.error(error)),
      );
    };

    read();
    return () => {
      stopWaiting?.();
      abort.abort();
      // An iterable that fails while it is put away has nobody left to tell.
      batches.return?.().then(undefined, () => {});
    };
  });
}
