import {
  from,
  isObservable,
  Observable,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
} from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import { Gate, withGate } from '../gate.js';
import type { MergeMapWeightedOptions } from '../mergeMapWeighted.js';
import { Downstream } from '../gates/Downstream.js';
import { type Heard, listen } from '../gates/listen.js';
import { mayBeFed } from './mayBeFed.js';
import { WatchedQueue } from '../gates/WatchedQueue.js';

/** `mergeMapWeighted`, with one more condition. */
export interface MergeMapAdmittingOptions<T> extends MergeMapWeightedOptions<T> {
  /** Whether one more may be admitted now. If not, `onRoom` is called when it may be. */
  readonly admits: (onRoom: () => void) => boolean;
}

/** What `mergeMapWeighted` documents. A value is admitted only while `admits` says so, too. */
export function mergeMapAdmitting<T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  { weight, budget, concurrency = Infinity, admits }: MergeMapAdmittingOptions<T>,
): OperatorFunction<T, ObservedValueOf<O>> {
  checkAtLeast({ concurrency }, 1);
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

      const hasRoom = () => active < concurrency && spent <= limit && downstream.isOpen && admits(admitMore);

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
      const admitMore = (): void => {
        if (subscriber.closed) return;
        try {
          withGate(downstream.gate, admit);
        } catch (error) {
          subscriber.error(error);
        }
      };
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
