import { Queue } from '../../wire/Queue.js';
import type { Exchange } from '../Exchange.js';
import type { Carrier } from '../Lanes.js';
import { TransportFailure } from '../Transport.js';
import type { Http1Connection } from './Http1Connection.js';

/** How many connections a lane opens without waiting for one to become free. */
const FEW = 32;
/** How often a lane in which requests wait looks whether more connections would help. */
const LOOK_EVERY_MS = 100;

/**
 * A lane of HTTP/1.1: each request in flight has a connection, at most `limit`. The one that became free last is used next.
 *
 * Requests that are answered at once share a few connections: opening one costs both sides as much as several such requests. Where the
 * service holds requests, as it does with polls, twice as many may be opened every 100 ms, until none waits.
 *
 * undici's own pool looks through its connections for a free one: with two thousand open polls that took as long as the rest of a poll.
 */
export class PooledLane implements Carrier {
  readonly #connections: Http1Connection[] = [];
  readonly #free: Http1Connection[] = [];
  readonly #waiting = new Queue<Exchange>();
  /** Who waits for room outside. */
  readonly #outside = new Set<() => void>();
  /** How many connections may be open by now. */
  #allowed: number;
  /** Requests that ended since the last look. */
  #done = 0;
  #isServing = false;
  #look: NodeJS.Timeout | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(
    /** Makes a connection, which opens when it is used. */
    readonly connection: () => Http1Connection,
    readonly limit: number,
  ) {
    this.#allowed = Math.min(FEW, limit);
  }

  send(exchange: Exchange): void {
    const connection = this.#waiting.length === 0 ? this.#take() : undefined;
    if (connection !== undefined) return this.#carry(connection, exchange);
    this.#waiting.push(exchange);
    this.#lookLater();
  }

  hasRoom(onRoom: () => void): boolean {
    if (this.#free.length > 0 || this.#connections.length < this.#allowed) return true;
    this.#outside.add(onRoom);
    this.#lookLater();
    return false;
  }

  async close(): Promise<void> {
    this.#tellOutside();
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  async destroy(): Promise<void> {
    clearTimeout(this.#look);
    this.#tellOutside();
    while (this.#waiting.length > 0)
      this.#waiting.shift().fail(new TransportFailure('connection', 'the client is destroyed'));
    this.#onEmpty?.();
    await Promise.all(this.#connections.map((connection) => connection.destroy()));
  }

  /** A free connection, or a new one where that is allowed. */
  #take(): Http1Connection | undefined {
    const free = this.#free.pop();
    if (free !== undefined || this.#connections.length >= this.#allowed) return free;
    const connection = this.connection();
    this.#connections.push(connection);
    return connection;
  }

  #lookLater(): void {
    if (this.#look !== undefined || this.#allowed >= this.limit) return;
    this.#done = 0;
    this.#look = setTimeout(() => this.#allowMore(), LOOK_EVERY_MS);
  }

  /** Where connections served less than one request each since the last look, twice as many are allowed. */
  #allowMore(): void {
    this.#look = undefined;
    const { length } = this.#connections;
    if (this.#done < length) this.#allowed = Math.min(2 * length, this.limit);
    while (this.#connections.length < this.#allowed) {
      const exchange = this.#shift();
      if (exchange === undefined) return this.#tellOutside();
      this.#carry(this.#take()!, exchange);
    }
    if (this.#waiting.length > 0 || this.#outside.size > 0) this.#lookLater();
  }

  #tellOutside(): void {
    if (this.#outside.size === 0) return;
    const outside = [...this.#outside];
    this.#outside.clear();
    for (const onRoom of outside) onRoom();
  }

  #carry(connection: Http1Connection, exchange: Exchange): void {
    connection.carry(exchange, () => this.#release(connection));
  }

  #release(connection: Http1Connection): void {
    this.#done++;
    this.#free.push(connection);
    // One that cannot be sent is done at once: whoever gave it the connection goes on with the next.
    if (!this.#isServing) this.#serve();
  }

  /** Gives free connections to what waits. */
  #serve(): void {
    this.#isServing = true;
    try {
      while (this.#free.length > 0) {
        const exchange = this.#shift();
        if (exchange === undefined) break;
        this.#carry(this.#free.pop()!, exchange);
      }
    } finally {
      this.#isServing = false;
    }
    if (this.#free.length > 0) this.#tellOutside();
  }

  /** The oldest that waits and was not cancelled meanwhile. */
  #shift(): Exchange | undefined {
    while (this.#waiting.length > 0) {
      const exchange = this.#waiting.shift();
      if (!exchange.settled) return exchange;
    }
    this.#onEmpty?.();
    return undefined;
  }
}
