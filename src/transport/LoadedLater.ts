import type { Exchange } from './Exchange.js';
import { TransportFailure } from './Transport.js';

/**
 * A module that takes long to load, loaded when the first request is made. Requests wait for it in the order in which they were made.
 */
export class LoadedLater<M> {
  #module: M | undefined;
  #loading: Promise<void> | undefined;
  #waiting: Waiting<M>[] = [];

  constructor(readonly load: () => Promise<M>) {}

  /** Has the exchange carried, now or as soon as the module is there. */
  use(exchange: Exchange, carry: (module: M) => void): void {
    if (this.#module !== undefined) return carry(this.#module);
    this.#waiting.push({ exchange, carry });
    this.#loading ??= this.load().then(
      (module) => {
        for (const { exchange, carry } of this.#takeWaiting()) if (!exchange.settled) carry(module);
        this.#module = module;
      },
      (error: unknown) => {
        this.#loading = undefined;
        for (const { exchange } of this.#takeWaiting()) exchange.fail(error);
      },
    );
  }

  /** Ends when no request waits for the module any more. */
  async settled(): Promise<void> {
    await this.#loading;
  }

  /** Fails what waits for the module. */
  destroy(): void {
    for (const { exchange } of this.#takeWaiting())
      exchange.fail(new TransportFailure('connection', 'the client is destroyed'));
  }

  #takeWaiting(): readonly Waiting<M>[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

interface Waiting<M> {
  readonly exchange: Exchange;
  readonly carry: (module: M) => void;
}
