import { Observable } from 'rxjs';
import { Queue } from './Queue.js';
import type { BudgetUse } from '../session/underWay.js';

interface Waiting {
  state: 'waiting' | 'admitted' | 'left';
  readonly weight: () => number;
  readonly admit: (release: () => void) => void;
}

/**
 * A budget that many share, such as bytes or slots: each user of it waits in line until there is room.
 *
 * A `soft` budget admits while its balance is not negative, so that one oversized request may overshoot and then
 * blocks the rest; a hard one admits what fits. Nobody overtakes.
 */
export class Budget {
  #balance: number;
  readonly #line = new Queue<Waiting>();
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
      const entry: Waiting = {
        state: 'waiting',
        weight: typeof weight === 'number' ? () => weight : weight,
        admit: (release) => {
          subscriber.add(release);
          try {
            subscriber.add(work().subscribe(subscriber));
          } catch (error) {
            subscriber.error(error);
          }
        },
      };
      this.#line.push(entry);
      this.#waiting++;
      this.#serve();
      if (this.#waiting > 0) subscriber.add(() => this.#leave(entry));
    });
  }

  #leave(entry: Waiting): void {
    if (entry.state !== 'waiting') return;
    // Its place stays until it comes up: searching the line for it would be slow.
    entry.state = 'left';
    this.#waiting--;
  }

  #serve(): void {
    // Work may finish while it is being admitted; the loop below then sees its weight come back.
    if (this.#serving) return;
    this.#serving = true;
    for (let next = this.#line.peek(); next !== undefined; next = this.#line.peek()) {
      if (next.state === 'left') {
        this.#line.shift();
        continue;
      }
      const weight = next.weight();
      if (this.kind === 'soft' ? this.#balance < 0 : this.#balance < weight) break;
      this.#line.shift();
      next.state = 'admitted';
      this.#waiting--;
      this.#balance -= weight;
      let held = true;
      next.admit(() => {
        if (!held) return;
        held = false;
        this.#balance += weight;
        this.#serve();
      });
    }
    this.#serving = false;
  }
}
