import { type MonoTypeOperatorFunction, Observable } from 'rxjs';
import { Downstream, listen } from './shared/listen.js';

/**
 * Carries the gate from downstream over a wait: what is subscribed to because of a value finds the gate again.
 *
 * ```ts
 * from(newestFile).pipe(           // a promise: its value arrives long after subscribe
 *   keepGate(),
 *   concatMap((file) => fromConversations(file)),
 *   toDatums(renderer),
 *   batch({ size: 128 }),
 *   train(trainer, options),
 * )
 * ```
 * A gate is handed upstream while subscribing, which is synchronous. Where an operator between the source and the
 * bounded operator subscribes later, because of a timer, a promise or a request, put this right before it.
 * Values, errors and completion pass unchanged. Holds nothing.
 *
 * @see docs/backpressure.md
 */
export function keepGate<T>(): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable<T>((subscriber) => {
      const heard = { next: (value: T) => subscriber.next(value), complete: () => subscriber.complete() };
      listen(source, new Downstream(subscriber), heard, undefined);
    });
}
