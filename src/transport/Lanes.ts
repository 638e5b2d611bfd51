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
  readonly #retired = new Set<Promise<void>>();

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
    const closing = carrier.close().finally(() => this.#retired.delete(closing));
    this.#retired.add(closing);
  }

  retireAll(): void {
    for (const lane of [...this.#open.keys()]) this.retire(lane);
  }

  async end(how: 'close' | 'destroy'): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all([...open.map((carrier) => carrier[how]()), ...this.#retired]);
  }
}
