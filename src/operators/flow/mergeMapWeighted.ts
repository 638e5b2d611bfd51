import {
  from,
  isObservable,
  Observable,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
} from 'rxjs';
import { Queue } from '../../support/Queue.js';
import { Gate, withGate } from '../pressure/gate.js';
import { Downstream, type Heard, listen, mayBeFed } from '../pressure/shared/listen.js';
import { WatchedQueue } from '../pressure/shared/backpressureEvents.js';

/** Options of `mergeMapWeighted`. */
export interface MergeMapWeightedOptions<T> {
  /** What a value takes from the budget while its inner runs: a finite number ≥ 0. Read when it is admitted. */
  readonly weight: (value: T, index: number) => number;
  /**
   * How much may be in flight. A stream of budgets changes it while running: a larger one admits more at once, a
   * smaller one waits until enough has finished, a negative one admits nothing. Nothing is admitted before the first;
   * a stream that ends without one is an error.
   */
  readonly budget: number | Observable<number>;
  /** How many inners may run at once, whatever they weigh: ≥ 1. A stream changes it while running. Default: no limit. */
  readonly concurrency?: number | Observable<number>;
  /** Whether a long queue is a warning of the process. Default true: it means that what feeds the operator does not pause. */
  readonly warn?: boolean;
}

/**
 * `mergeMap` that counts what is in flight by weight: a value is admitted while the balance of the budget is ≥ 0.
 *
 * ```
 * source    -a-b-c----------|      weight 1, budget 1
 * a          ------x|
 * b            -------y|
 * c                 --z|           admitted when a has given its weight back
 * result    -------x--(yz)--|
 * ```
 * One value may overshoot the budget, so a value heavier than the whole of it still runs, and then all wait until the
 * balance is back at 0. Values are admitted strictly in order: a light one never overtakes a heavy one.
 *
 * Errors of the source, of an inner, of the streams of budgets and limits, and throws of `project` or `weight` end the stream at
 * once and unsubscribe every inner. It completes when the source and all inners have. Unsubscribing stops all of them.
 * Values that wait are queued without bound, but its {@link Gate} is closed while any waits, so sources that know of
 * gates stop sending; it admits nothing while the gate downstream of it is closed. Values that are Observables (`window`, `groupBy`)
 * may need the source to continue before they can end: with them, the gate stays open.
 *
 * @see concatMapAhead for results in order
 */
export function mergeMapWeighted<T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  { weight, budget, concurrency = Infinity, warn = true }: MergeMapWeightedOptions<T>,
): OperatorFunction<T, ObservedValueOf<O>> {
  if (!isObservable(concurrency)) checkConcurrency(concurrency);
  if (!isObservable(budget)) checkBudget(budget);
  return (source) =>
    new Observable((subscriber) => {
      const gate = new Gate();
      const waiting: Queue<T> = warn ? new WatchedQueue('mergeMapWeighted') : new Queue();
      let limit = isObservable(budget) ? -Infinity : budget;
      let most = isObservable(concurrency) ? 0 : concurrency;
      let spent = 0;
      let active = 0;
      let index = 0;
      let ended = false;
      let fed = false;
      let admitting = false;

      const hasRoom = () => active < most && spent <= limit && downstream.isOpen;

      const inners: Heard<ObservedValueOf<O>, number> = {
        next: (value) => subscriber.next(value),
        complete: (price) => {
          active--;
          // Reset when idle: float sums drift.
          spent = active === 0 ? 0 : spent - price;
          admit();
        },
      };

      const start = (value: T) => {
        const price = weight(value, index);
        if (!(price >= 0 && price < Infinity)) throw new RangeError(`weight must be finite and >= 0, got ${price}`);
        active++;
        spent += price;
        listen(from(project(value, index++)) as Observable<ObservedValueOf<O>>, downstream, inners, price);
      };

      const admit = () => {
        // Re-entrant call of a synchronous inner: the running loop handles it.
        if (admitting) return;
        admitting = true;
        while (waiting.length > 0 && hasRoom() && !subscriber.closed) start(waiting.shift());
        admitting = false;
        if (ended && active === 0 && waiting.length === 0) subscriber.complete();
        if (subscriber.closed) return;
        downstream.waitIfClosed();
        gate.set(fed || (waiting.length === 0 && hasRoom()));
      };

      const downstream = new Downstream(subscriber, admit);
      const limits = (what: string, set: (value: number) => void): Heard<number, undefined> => {
        let isSet = false;
        return {
          next: (value) => {
            isSet = true;
            set(value);
            admit();
          },
          complete: () => {
            if (!isSet) throw new Error(`the stream of ${what} ended without a ${what.slice(0, -1)}`);
          },
        };
      };
      if (isObservable(budget))
        listen(
          budget,
          downstream,
          limits('budgets', (value) => (limit = checkBudget(value))),
          undefined,
        );
      if (isObservable(concurrency))
        listen(
          concurrency,
          downstream,
          limits('limits', (value) => (most = checkConcurrency(value))),
          undefined,
        );
      admit();
      const outer: Heard<T, undefined> = {
        next: (value) => {
          fed ||= mayBeFed(value);
          waiting.push(value);
          admit();
        },
        complete: () => {
          ended = true;
          admit();
        },
      };
      withGate(gate, () => listen(source, downstream, outer, undefined));
      // After the source, which must not run on: others may share its gate.
      subscriber.add(() => {
        waiting.clear();
        gate.set(true);
      });
    });
}

function checkBudget(budget: number): number {
  if (Number.isNaN(budget)) throw new RangeError('budget must be a number, got NaN');
  return budget;
}

function checkConcurrency(concurrency: number): number {
  if (!(concurrency >= 1)) throw new RangeError(`concurrency must be >= 1, got ${concurrency}`);
  return concurrency;
}
