/** Something that is opened when it is first needed, kept, and opened again when it turns out to be lost. */
export class Renewable<T> {
  readonly #open: () => PromiseLike<T>;
  #opening: Promise<T> | undefined;

  constructor(open: () => PromiseLike<T>) {
    this.#open = open;
  }

  get(): Promise<T> {
    return (this.#opening ??= this.#start());
  }

  /** Opens another one in place of `lost`. Callers that lost the same one get the same new one. */
  async renew(lost: T): Promise<T> {
    const opening = this.get();
    const current = await opening;
    if (current !== lost) return current;
    // Another caller may have come first.
    if (this.#opening === opening) this.#opening = this.#start();
    return this.get();
  }

  /** The one that is open, if one is. */
  async opened(): Promise<T | undefined> {
    return this.#opening?.catch(() => undefined);
  }

  #start(): Promise<T> {
    const opening = Promise.resolve().then(() => this.#open());
    // A failure is not kept: the next caller tries again.
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }
}
