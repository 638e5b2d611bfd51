import { concat, defer, EMPTY, mergeMap, type MonoTypeOperatorFunction, of } from 'rxjs';
import type { MarkedBatch } from '../../training/trainingBatch.js';

/** Tells the last batch that it is: each that does not know is held back until the next one, or the end, has come. */
export function markLast<T>(): MonoTypeOperatorFunction<MarkedBatch<T>> {
  return (source) =>
    defer(() => {
      let held: MarkedBatch<T> | undefined;
      return concat(
        source.pipe(
          mergeMap((batch) => {
            const before = held;
            const known = batch.last !== undefined;
            held = known ? undefined : batch;
            return of(...(before === undefined ? [] : [before]), ...(known ? [batch] : []));
          }),
        ),
        defer(() => (held === undefined ? EMPTY : of({ ...held, last: true }))),
      );
    });
}
