import { identity, Observable, type OperatorFunction } from 'rxjs';
import { Downstream, type Heard, listen } from '../pressure/shared/listen.js';

/** Options of `repeatEpochs`. */
export interface RepeatEpochsOptions<T, R> {
  /** How often the source is run through: an integer ≥ 0. Default: without end. */
  readonly epochs?: number;
  /** What to do with each epoch's data, counted from 0: a shuffle with its own seed, for example. Default: nothing. */
  readonly each?: (source: Observable<T>, epoch: number) => Observable<R>;
}

/**
 * Subscribes to the source once per epoch, one after the other.
 *
 * ```
 * source    -a-b-|                 epochs 2
 * result    -a-b--a-b-|
 * ```
 * ```ts
 * rows.pipe(repeatEpochs({ epochs: 3, each: (rows, epoch) => rows.pipe(shuffle({ window: 4096, seed: epoch })) }))
 * ```
 * Errors, also throws of `each`, end it at once. It completes after the last epoch. An endless one over an empty source
 * would spin, so without `epochs` an epoch without a value ends it. Unsubscribing stops the epoch in progress. Holds
 * nothing. No epoch is started while the bounded operator downstream is full, so data in memory (`from(array)`), which
 * does not pause, is read one epoch ahead at most; `fromArray` pauses between any two values.
 */
export function repeatEpochs<T, R = T>({
  epochs = Infinity,
  each = identity as (source: Observable<T>, epoch: number) => Observable<R>,
}: RepeatEpochsOptions<T, R> = {}): OperatorFunction<T, R> {
  if (!(epochs === Infinity || (Number.isInteger(epochs) && epochs >= 0))) {
    throw new RangeError(`epochs must be an integer >= 0, got ${epochs}`);
  }
  return (source) =>
    new Observable((subscriber) => {
      let epoch = 0;
      let values = 0;
      let over = true;
      let looping = false;
      const heard: Heard<R, undefined> = {
        next: (value) => {
          values++;
          subscriber.next(value);
        },
        complete: () => {
          over = true;
          advance();
        },
      };
      // A loop, where `repeat` would recurse: thousands of synchronous epochs must not end in a stack overflow.
      const advance = () => {
        if (looping) return;
        looping = true;
        while (over && !subscriber.closed) {
          if (epoch === epochs || (epochs === Infinity && epoch > 0 && values === 0)) {
            subscriber.complete();
            break;
          }
          if (!downstream.isOpen) {
            downstream.waitIfClosed();
            break;
          }
          over = false;
          values = 0;
          listen(each(source, epoch++), downstream, heard, undefined);
        }
        looping = false;
      };
      const downstream = new Downstream(subscriber, advance);
      advance();
    });
}
