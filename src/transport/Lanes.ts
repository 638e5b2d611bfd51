import type { Exchange } from './Exchange.js';
import type { Lane } from './Transport.js';

/** A lane: it carries exchanges, one or many at a time, until it is closed. */
export interface Carrier {
  send(exchange: Exchange): void;
  /** Whether an exchange would be sent at once; if not, `onRoom` is called when it may be. Default: yes. */
  hasRoom?(onRoom: () => void): boolean;
  /** Takes nothing new and waits for what is in flight. */
  close(): Promise<void>;
  /** Fails what is in flight. */
  destroy(): Promise<void>;
}

/** The lanes of one transport that were opened so far. */
export class Lanes {
  readonly #open = new Map<Lane, Carrier>();
  /** Those that only finish what they carry, and when they have. */
  readonly #closing = new Map<Carrier, Promise<void>>();

  /** The lane, which `make` opens when it is used for the first time. */
  of(lane: Lane, make: () => Carrier): Carrier {
    let carrier = this.#open.get(lane);
    if (carrier === undefined) this.#open.set(lane, (carrier = make()));
    return carrier;
  }

  hasRoom(lane: Lane, onRoom: () => void): boolean {
    return this.#open.get(lane)?.hasRoom?.(onRoom) ?? true;
  }

  /** Lets a lane's connections finish what they carry; the next request gets a new one. */
  retire(lane: Lane): void {
    const carrier = this.#open.get(lane);
    if (carrier === undefined) return;
    this.#open.delete(lane);
    this.#closing.set(
      carrier,
      carrier.close().finally(() => this.#closing.delete(carrier)),
    );
  }

  retireAll(): void {
    for (const lane of [...this.#open.keys()]) this.retire(lane);
  }

  /** Waits for what is in flight in all lanes. */
  async close(): Promise<void> {
    this.retireAll();
    await Promise.all(this.#closing.values());
  }

  /** Fails what is in flight in all lanes, also in those that are closing. */
  async destroy(): Promise<void> {
    const carriers = [...this.#open.values(), ...this.#closing.keys()];
    this.#open.clear();
    await Promise.all(carriers.map((carrier) => carrier.destroy()));
  }
}
