import { identity, Observable, type OperatorFunction } from 'rxjs';
import { currentGate, withGate } from './gate.js';
import { Listener, type ListenerCallbacks } from './internal/listener.js';

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
 * Errors, also throws of `each`, end it at once. It completes after the last epoch; an endless one over an empty
 * source would spin, so an epoch without a value ends it too. The next epoch begins once its {@link Gate} downstream is
 * open, so that an endless one over an array does not spin either. Unsubscribing stops the epoch in flight. Holds nothing.
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
      const gate = currentGate();
      let epoch = 0;
      let values = 0;
      let over = true;
      let looping = false;
      const run: ListenerCallbacks<R, undefined> = {
        next: (value) => {
          values++;
          subscriber.next(value);
        },
        complete: () => {
          over = true;
          advance();
        },
      };
      let stopWaiting: (() => void) | undefined;
      subscriber.add(() => stopWaiting?.());
      // A loop, where `repeat` would recurse: thousands of synchronous epochs must not end in a stack overflow.
      const advance = () => {
        if (looping) return;
        looping = true;
        while (over && !subscriber.closed) {
          if (epoch === epochs || (epoch > 0 && values === 0)) {
            subscriber.complete();
            break;
          }
          if (gate?.isOpen === false) {
            stopWaiting = gate.onceOpen(() => withGate(gate, advance));
            break;
          }
          over = false;
          values = 0;
          each(source, epoch++).subscribe(new Listener(subscriber, gate, run, undefined));
        }
        looping = false;
      };
      advance();
    });
}
