import type { Client, Dispatcher } from 'undici';
import type { BaseUrl } from './baseUrl.js';
import { Queue } from '../wire/Queue.js';
import type { Exchange } from './Exchange.js';
import type { Carrier } from './Lanes.js';
import { TransportFailure } from './Transport.js';

/** A lane of HTTP/1.1 over a dispatcher of undici that finds its connections by itself, as the one for proxies does. */
export class Http1Lane implements Carrier {
  constructor(
    readonly dispatcher: Dispatcher,
    readonly baseUrl: BaseUrl,
  ) {}

  send(exchange: Exchange): void {
    dispatch(this.dispatcher, this.baseUrl, exchange);
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  destroy(): Promise<void> {
    return this.dispatcher.destroy();
  }
}

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
  readonly #clients: Client[] = [];
  readonly #free: Client[] = [];
  readonly #waiting = new Queue<Exchange>();
  /** Who waits for room outside. */
  readonly #outside = new Set<() => void>();
  /** How many connections may be open by now. */
  #allowed: number;
  /** Requests that ended since the last look. */
  #done = 0;
  #look: NodeJS.Timeout | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(
    readonly Connection: typeof Client,
    readonly baseUrl: BaseUrl,
    readonly limit: number,
    readonly options: Client.Options,
  ) {
    this.#allowed = Math.min(FEW, limit);
  }

  send(exchange: Exchange): void {
    const client = this.#take();
    if (client !== undefined) return this.#carry(client, exchange);
    this.#waiting.push(exchange);
    this.#lookLater();
  }

  hasRoom(onRoom: () => void): boolean {
    if (this.#free.length > 0 || this.#clients.length < this.#allowed) return true;
    this.#outside.add(onRoom);
    this.#lookLater();
    return false;
  }

  async close(): Promise<void> {
    this.#tellOutside();
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async destroy(): Promise<void> {
    clearTimeout(this.#look);
    this.#tellOutside();
    while (this.#waiting.length > 0)
      this.#waiting.shift().fail(new TransportFailure('connection', 'the client is destroyed'));
    await Promise.all(this.#clients.map((client) => client.destroy()));
  }

  /** A free connection, or a new one where that is allowed. */
  #take(): Client | undefined {
    const free = this.#free.pop();
    if (free !== undefined || this.#clients.length >= this.#allowed) return free;
    const client = new this.Connection(this.baseUrl.origin, this.options);
    this.#clients.push(client);
    return client;
  }

  #lookLater(): void {
    if (this.#look !== undefined || this.#allowed >= this.limit) return;
    this.#done = 0;
    this.#look = setTimeout(() => this.#allowMore(), LOOK_EVERY_MS);
  }

  /** Where connections served less than one request each since the last look, twice as many are allowed. */
  #allowMore(): void {
    this.#look = undefined;
    const { length } = this.#clients;
    if (this.#done < length) this.#allowed = Math.min(2 * length, this.limit);
    while (this.#clients.length < this.#allowed) {
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

  #carry(client: Client, exchange: Exchange): void {
    dispatch(client, this.baseUrl, exchange, () => this.#release(client));
  }

  #release(client: Client): void {
    this.#done++;
    const exchange = this.#shift();
    if (exchange !== undefined) return this.#carry(client, exchange);
    this.#free.push(client);
    this.#tellOutside();
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

/** Hands an exchange to undici. `onDone` is called once, when its connection has no more to do with it. */
function dispatch(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  { origin, prefix }: BaseUrl,
  exchange: Exchange,
  onDone?: () => void,
): void {
  const { request, body } = exchange;
  const options: Dispatcher.DispatchOptions = {
    origin,
    path: prefix + request.path,
    method: request.method,
    headers: request.headers,
    body: body ?? null,
  };
  if (exchange.isLarge) {
    // In pieces, to see it move; undici takes the next one when the last has left.
    options.headers = { ...request.headers, 'content-length': String(body!.length) };
    options.body = exchange.pieces() as never;
  }
  try {
    dispatcher.dispatch(options, new Handler(exchange, onDone));
  } catch (error) {
    exchange.fail(error);
    onDone?.();
  }
}

/** undici's lowest interface: its promises and streams cost more than the rest of a request. */
class Handler implements Dispatcher.DispatchHandler {
  constructor(
    readonly exchange: Exchange,
    readonly onDone: (() => void) | undefined,
  ) {}

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.exchange.begin(() => controller.abort(new TransportFailure('connection', 'the request was given up')));
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.exchange.responseStart(status, headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.exchange.responseData(chunk);
  }

  onResponseEnd(): void {
    // First, so that what follows from the answer finds the connection free.
    this.onDone?.();
    this.exchange.responseEnd();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.onDone?.();
    this.exchange.fail(error);
  }
}
