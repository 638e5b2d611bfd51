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
 * through, is the stream's error; so is a batch that cannot be iterated. Unsubscribing aborts the signal and returns both
 * the iterator of the batch it is in and the iterator of batches. Holds one batch.
 *
 * @see docs/backpressure.md
 */
export function fromRowBatches<T>(open: (signal: AbortSignal) => AsyncIterable<Iterable<T>>): Observable<T> {
  return new Observable((subscriber) => {
    const gate = currentGate();
    const abort = new AbortController();
    const batches = open(abort.signal)[Symbol.asyncIterator]();
    let rows: Iterator<T> | undefined;
    let walking = false;
    let stopWaiting: (() => void) | undefined;

    // Everything is emitted under the gate, so that what starts because of a row, or because of the end, finds it too.
    const emit = () => withGate(gate, emitRows);
    const fail = (error: unknown) => withGate(gate, () => subscriber.error(error));
    const emitRows = () => {
      walking = true;
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
        // An iterator that has thrown is over.
        rows = undefined;
        subscriber.error(error);
      } finally {
        walking = false;
      }
      if (subscriber.closed) putAway();
      else read();
    };

    const read = () => {
      batches
        .next()
        .then((batch) => {
          if (subscriber.closed) return;
          if (batch.done === true) return withGate(gate, () => subscriber.complete());
          rows = iteratorOf(batch.value);
          emit();
        }, fail)
        .catch(fail);
    };

    /** Returns a batch that nobody will walk through to its end. */
    const putAway = () => {
      const left = rows;
      rows = undefined;
      try {
        left?.return?.();
      } catch {
        // Nobody is left to tell.
      }
    };

    read();
    return () => {
      stopWaiting?.();
      abort.abort();
      // Who unsubscribes on a row does so while the batch is in use; it is put away right after.
      if (!walking) putAway();
      // An iterable that fails while it is put away has nobody left to tell.
      batches.return?.().then(undefined, () => {});
    };
  });
}

function iteratorOf<T>(batch: Iterable<T>): Iterator<T> {
  if (typeof (batch as Partial<Iterable<T>> | null | undefined)?.[Symbol.iterator] !== 'function') {
    throw new TypeError(`a batch of rows must be iterable, got ${batch === null ? 'null' : typeof batch}`);
  }
  return batch[Symbol.iterator]();
}
