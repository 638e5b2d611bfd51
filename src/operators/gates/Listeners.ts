import type { Subscriber, Unsubscribable } from 'rxjs';

/**
 * What an operator listens to: it ends when the operator's subscriber does.
 *
 * RxJS keeps this in a list that it searches for each one that ends, which with two thousand in flight takes as long as the rest.
 */
export class Listeners {
  readonly #all = new Set<Unsubscribable>();

  constructor(subscriber: Pick<Subscriber<never>, 'add'>) {
    subscriber.add(() => {
      for (const listener of this.#all) listener.unsubscribe();
    });
  }

  add(listener: Unsubscribable): void {
    this.#all.add(listener);
  }

  delete(listener: Unsubscribable): void {
    this.#all.delete(listener);
  }
}
