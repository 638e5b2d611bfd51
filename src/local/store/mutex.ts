/** Runs one task at a time, in the order they were given. A task that fails does not stop the next. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<A>(task: () => Promise<A>): Promise<A> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
