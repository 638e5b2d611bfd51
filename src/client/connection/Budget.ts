import { Observable, type Subscriber, type Unsubscribable } from 'rxjs';
import { Queue } from '../../wire/Queue.js';
import type { BudgetUse } from '../session/underWay.js';

/**
 * A budget that many share, such as bytes or slots: each user of it waits in line until there is room.
 *
 * A `soft` budget admits while its balance is not negative, so that one oversized request may overshoot and then
 * blocks the rest; a hard one admits what fits. Nobody overtakes.
 */
export class Budget {
  #balance: number;
  readonly #line = new Queue<Holder>();
  #waiting = 0;
  #serving = false;

  constructor(
    readonly size: number,
    readonly kind: 'soft' | 'hard',
  ) {
    this.#balance = size;
  }

  get inUse(): number {
    return this.size - this.#balance;
  }
  get waiting(): number {
    return this.#waiting;
  }
  get use(): BudgetUse {
    return { inUse: this.inUse, size: this.size, waiting: this.#waiting };
  }

  /** Runs the work while it holds `weight` of the budget; the weight is read when it is admitted. */
  hold<T>(weight: number | (() => number), work: () => Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      const holder = new Holder(weight, work, subscriber, this);
      subscriber.add(holder);
      this.#line.push(holder);
      this.#waiting++;
      this.#serve();
    });
  }

  /** Takes back what it holds, or its place in line. */
  leave(holder: Holder): void {
    const { state } = holder;
    holder.state = 'gone';
    if (state === 'holding') {
      this.#balance += holder.held;
      this.#serve();
    }
    // A place in line stays until it comes up: searching the line for it would be slow.
    if (state === 'waiting') this.#waiting--;
  }

  #serve(): void {
    // Work may finish while it is being admitted; the loop below then sees its weight come back.
    if (this.#serving) return;
    this.#serving = true;
    for (let next = this.#line.peek(); next !== undefined; next = this.#line.peek()) {
      if (next.state === 'gone') {
        this.#line.shift();
        continue;
      }
      const weight = next.weight();
      if (this.kind === 'soft' ? this.#balance < 0 : this.#balance < weight) break;
      this.#line.shift();
      this.#waiting--;
      this.#balance -= weight;
      next.admit(weight);
    }
    this.#serving = false;
  }
}

/** One user of a budget: one object, since thousands may wait. */
class Holder implements Unsubscribable {
  state: 'waiting' | 'holding' | 'gone' = 'waiting';
  held = 0;

  constructor(
    readonly asked: number | (() => number),
    readonly work: () => Observable<unknown>,
    readonly subscriber: Subscriber<unknown>,
    readonly budget: Budget,
  ) {}

  weight(): number {
    return typeof this.asked === 'number' ? this.asked : this.asked();
  }

  admit(weight: number): void {
    this.state = 'holding';
    this.held = weight;
    try {
      this.work().subscribe(this.subscriber);
    } catch (error) {
      this.subscriber.error(error);
    }
  }

  unsubscribe(): void {
    this.budget.leave(this);
  }
}
