import { Observable } from 'rxjs';

interface Waiting {
  readonly weight: () => number;
  readonly admit: (release: () => void) => void;
}

/**
 * A budget that many share, such as bytes or slots: whoever takes of it waits in line until there is room.
 *
 * A `soft` budget admits while its balance is not negative, so that one oversized request may overshoot and then
 * blocks the rest; a hard one admits what fits. Nobody overtakes.
 */
export class Budget {
  #balance: number;
  readonly #line: Waiting[] = [];
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
    return this.#line.length;
  }

  /** Runs the work while it holds `weight` of the budget; the weight is asked for at the moment of admission. */
  hold<T>(weight: number | (() => number), work: () => Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      const entry: Waiting = {
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
      this.#serve();
      if (this.#line.length > 0) subscriber.add(() => this.#leave(entry));
    });
  }

  #leave(entry: Waiting): void {
    const place = this.#line.indexOf(entry);
    if (place >= 0) this.#line.splice(place, 1);
  }

  #serve(): void {
    // Work may finish while it is being admitted; the loop below then sees its weight come back.
    if (this.#serving) return;
    this.#serving = true;
    for (let next = this.#line[0]; next !== undefined; next = this.#line[0]) {
      const weight = next.weight();
      if (this.kind === 'soft' ? this.#balance < 0 : this.#balance < weight) break;
      this.#line.shift();
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
