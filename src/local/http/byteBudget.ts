/** Limits the bytes held at once. Callers queue until there is room. */
export class ByteBudget {
  readonly #waiting: (() => void)[] = [];
  #held = 0;

  constructor(private readonly limit: number) {}

  /** Resolves, when there is room, to a function that gives the bytes back. More than there is in all waits for all of it. */
  async take(bytes: number): Promise<() => void> {
    const taken = Math.min(bytes, this.limit);
    if (this.#waiting.length > 0 || this.#held + taken > this.limit) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(() => {
          if (this.#held + taken > this.limit) return;
          this.#waiting.shift();
          this.#held += taken;
          resolve();
        });
      });
    } else this.#held += taken;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#held -= taken;
      this.#admit();
    };
  }

  #admit(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      first();
      if (this.#waiting[0] === first) return;
    }
  }
}
