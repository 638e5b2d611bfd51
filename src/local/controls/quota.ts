/** How much may be in flight at a time. Default: no limit. */
export interface QuotaLimits {
  /** How many requests at most. Default: no limit. */
  readonly requests?: number;
  /** Bytes of request bodies. */
  readonly bytes?: number;
}

/** How much work the server accepts at once. */
export interface Quotas {
  /** Samples accepted and not yet finished. */
  readonly sampling?: QuotaLimits;
  /** Training work accepted and not yet finished. */
  readonly training?: QuotaLimits;
}

/** Counts what is in flight. One request may overshoot the bytes, so that an oversized one can run at all. */
export class Quota {
  #requests = 0;
  #bytes = 0;
  #limits: QuotaLimits;
  #waiting: (() => void)[] = [];

  constructor(limits: QuotaLimits = {}) {
    this.#limits = limits;
  }

  set limits(limits: QuotaLimits) {
    this.#limits = limits;
    this.#wake();
  }

  get full(): boolean {
    const { requests = Infinity, bytes = Infinity } = this.#limits;
    return this.#requests >= requests || this.#bytes >= bytes;
  }

  /** Takes its share; the function given back returns it, once. */
  take(bytes: number): () => void {
    this.#requests++;
    this.#bytes += bytes;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#requests--;
      this.#bytes -= bytes;
      this.#wake();
    };
  }

  /** Resolves when there is room; first come, first served. */
  async room(): Promise<void> {
    while (this.full) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
