import {
  from,
  isObservable,
  Observable,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
} from 'rxjs';
import { Gate, withGate } from './gate.js';
import { Downstream } from './internal/Downstream.js';
import { type Heard, listen } from './internal/listen.js';
import { mayBeFed } from './internal/mayBeFed.js';
import { WatchedQueue } from './internal/WatchedQueue.js';

/** Options of `mergeMapWeighted`. */
export interface MergeMapWeightedOptions<T> {
  /** What a value takes from the budget while its inner runs: a finite number ≥ 0. */
  readonly weight: (value: T, index: number) => number;
  /**
   * How much may be in flight. A stream of budgets changes it while running: a larger one admits more at once, a
   * smaller one waits until enough has finished, a negative one admits nothing. Nothing is admitted before the first;
   * a stream that ends without one is an error.
   */
  readonly budget: number | Observable<number>;
  /** How many inners may run at once, whatever they weigh: ≥ 1. Default: no limit. */
  readonly concurrency?: number;
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
 * Errors of the source, of an inner, of the budget, and throws of `project` or `weight` end the stream at once and
 * unsubscribe every inner. It completes when the source and all inners have. Unsubscribing stops all of them.
 * Values that wait are queued without bound, but its {@link Gate} is closed while any waits, so sources that know of
 * gates stop sending; it admits nothing while the gate downstream of it is closed. An inner that is fed by the source
 * itself could then never end: where values are Observables (`window`, `groupBy`), and once an inner is heard because of
 * the source, the gate stays open.
 *
 * @see concatMapAhead for results in order
 */
export function mergeMapWeighted<T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  { weight, budget, concurrency = Infinity }: MergeMapWeightedOptions<T>,
): OperatorFunction<T, ObservedValueOf<O>> {
  if (!(concurrency >= 1)) throw new RangeError(`concurrency must be >= 1, got ${concurrency}`);
  if (!isObservable(budget)) checkBudget(budget);
  return (source) =>
    new Observable((subscriber) => {
      const gate = new Gate();
      const waiting = new WatchedQueue<T>('mergeMapWeighted');
      let limit = isObservable(budget) ? -Infinity : budget;
      let spent = 0;
      let active = 0;
      let index = 0;
      let ended = false;
      let fed = false;
      let admitting = false;

      const hasRoom = () => active < concurrency && spent <= limit && downstream.isOpen;

      const inners: Heard<ObservedValueOf<O>, number> = {
        next: (value) => subscriber.next(value),
        complete: (price) => {
          active--;
          // Sums of fractions drift; an empty house owes nothing.
          spent = active === 0 ? 0 : spent - price;
          admit();
        },
        under: (heard) => {
          if (heard !== gate || fed) return;
          fed = true;
          gate.set(true);
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
        // A synchronous inner comes back here from within the loop, which goes on by itself.
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
      const budgets: Heard<number, undefined> = {
        next: (value) => {
          limit = checkBudget(value);
          admit();
        },
        complete: () => {
          if (limit === -Infinity) throw new Error('the stream of budgets ended without a budget');
        },
      };
      if (isObservable(budget)) listen(budget, downstream, budgets, undefined);
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
      // Behind the source, which must not go on into nothing; who shares it must.
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
