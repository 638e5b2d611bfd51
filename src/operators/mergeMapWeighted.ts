import {
  from,
  isObservable,
  Observable,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
} from 'rxjs';
import { currentGate, Gate, withGate } from './gate.js';
import { Listener, type ListenerCallbacks } from './internal/listener.js';
import { Queue } from '../client/connection/Queue.js';

export interface MergeMapWeightedOptions<T> {
  /** What a value takes from the budget while its inner runs: a finite number ≥ 0. */
  readonly weight: (value: T, index: number) => number;
  /**
   * How much may be in flight. A stream of budgets changes it while running: a larger one admits more at once, a
   * smaller one waits until enough has finished, a negative one admits nothing. Nothing is admitted before the first.
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
 * gates stop sending; it admits nothing while the gate downstream of it is closed.
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
      const downstream = currentGate();
      const gate = new Gate();
      const waiting = new Queue<T>();
      let limit = isObservable(budget) ? -Infinity : budget;
      let spent = 0;
      let active = 0;
      let index = 0;
      let ended = false;
      let admitting = false;
      let stopWaiting: (() => void) | undefined;

      const hasRoom = () => active < concurrency && spent <= limit && (downstream === undefined || downstream.isOpen);

      const inners: ListenerCallbacks<ObservedValueOf<O>, number> = {
        next: (value) => subscriber.next(value),
        complete: (price) => {
          active--;
          // Sums of fractions drift; an empty house owes nothing.
          spent = active === 0 ? 0 : spent - price;
          admit();
        },
      };

      const start = (value: T) => {
        const price = weight(value, index);
        if (!(price >= 0 && price < Infinity)) throw new RangeError(`weight must be finite and >= 0, got ${price}`);
        active++;
        spent += price;
        const inner = from(project(value, index++)) as Observable<ObservedValueOf<O>>;
        inner.subscribe(new Listener(subscriber, downstream, inners, price));
      };

      const admit = () => {
        // A synchronous inner comes back here from within the loop, which goes on by itself.
        if (admitting) return;
        admitting = true;
        while (waiting.length > 0 && hasRoom() && !subscriber.closed) start(waiting.shift());
        admitting = false;
        settleGate();
      };

      const settleGate = () => {
        if (ended && active === 0 && waiting.length === 0) subscriber.complete();
        if (subscriber.closed) return;
        if (downstream?.isOpen === false && stopWaiting === undefined) {
          stopWaiting = downstream.onceOpen(() => {
            stopWaiting = undefined;
            withGate(downstream, () => guard(admit));
          });
        }
        gate.set(waiting.length === 0 && hasRoom());
      };

      const guard = (body: () => void) => {
        try {
          body();
        } catch (error) {
          subscriber.error(error);
        }
      };

      subscriber.add(() => {
        stopWaiting?.();
        waiting.clear();
      });

      if (isObservable(budget)) {
        budget.subscribe(
          new Listener<number>(
            subscriber,
            downstream,
            {
              next: (value) => {
                limit = checkBudget(value);
                admit();
              },
              complete: () => {},
            },
            undefined,
          ),
        );
      }
      settleGate();

      const outer = new Listener<T>(
        subscriber,
        downstream,
        {
          next: (value) => {
            waiting.push(value);
            admit();
          },
          complete: () => {
            ended = true;
            admit();
          },
        },
        undefined,
      );
      withGate(gate, () => source.subscribe(outer));
    });
}

function checkBudget(budget: number): number {
  if (Number.isNaN(budget)) throw new RangeError('budget must be a number, got NaN');
  return budget;
}
