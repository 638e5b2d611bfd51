import { Observable, type Subscriber, type Unsubscribable } from 'rxjs';
import { Queue } from '../../wire/Queue.js';
import type { BudgetUse } from '../session/underWay.js';

/** What lies behind a budget. While it is shut, the budget admits nobody: who waits there waits here, where it costs less. */
export interface Door {
  readonly isOpen: boolean;
  /** Has the budget served once it is open. */
  wait(budget: Budget): void;
}

/** How a budget is connected with the next one. */
export interface BudgetLinks {
  /** What lies behind it. */
  readonly door?: Door;
  /** Called when there is room and nobody waits. Returns whether somebody may have come meanwhile. */
  readonly onRoom?: () => boolean;
}

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
    readonly links: BudgetLinks = {},
  ) {
    this.#balance = size;
  }

  /** Whether one more would be admitted at once. */
  get hasRoom(): boolean {
    return this.#waiting === 0 && this.#balance > 0;
  }
  /** How many wait for what lies behind it and not for room, where each takes one. */
  get atDoor(): number {
    return Math.min(this.#waiting, this.#balance);
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
      this.serve();
    });
  }

  /** Takes back what it holds, or its place in line. */
  leave(holder: Holder): void {
    const { state } = holder;
    holder.state = 'gone';
    if (state === 'holding') {
      this.#balance += holder.held;
      this.serve();
    }
    // A place in line stays until it comes up: searching the line for it would be slow.
    if (state === 'waiting') this.#waiting--;
  }

  /** Admits all who may enter. */
  serve(): void {
    // Work may finish while it is being admitted; the loop below then sees its weight come back.
    if (this.#serving) return;
    this.#serving = true;
    const { door, onRoom } = this.links;
    for (;;) {
      const next = this.#line.peek();
      if (next === undefined) {
        if (this.#balance > 0 && onRoom?.() === true) continue;
        break;
      }
      if (next.state === 'gone') {
        this.#line.shift();
        continue;
      }
      if (door !== undefined && !door.isOpen) {
        door.wait(this);
        break;
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
