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

/**
 * A lane of HTTP/1.1 with a connection for each request in flight, at most `limit`. The one that became free last is used next.
 *
 * undici's own pool looks through its connections for a free one: with two thousand open polls that took as long as the rest of a poll.
 */
export class PooledLane implements Carrier {
  readonly #clients: Client[] = [];
  readonly #free: Client[] = [];
  readonly #waiting = new Queue<Exchange>();
  #onEmpty: (() => void) | undefined;

  constructor(
    readonly Connection: typeof Client,
    readonly baseUrl: BaseUrl,
    readonly limit: number,
    readonly options: Client.Options,
  ) {}

  send(exchange: Exchange): void {
    const client = this.#free.pop() ?? (this.#clients.length < this.limit ? this.#open() : undefined);
    if (client === undefined) this.#waiting.push(exchange);
    else this.#carry(client, exchange);
  }

  async close(): Promise<void> {
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async destroy(): Promise<void> {
    while (this.#waiting.length > 0)
      this.#waiting.shift().fail(new TransportFailure('connection', 'the client is destroyed'));
    await Promise.all(this.#clients.map((client) => client.destroy()));
  }

  #open(): Client {
    const client = new this.Connection(this.baseUrl.origin, this.options);
    this.#clients.push(client);
    return client;
  }

  #carry(client: Client, exchange: Exchange): void {
    dispatch(client, this.baseUrl, exchange, () => this.#release(client));
  }

  #release(client: Client): void {
    const exchange = this.#shift();
    if (exchange === undefined) this.#free.push(client);
    else this.#carry(client, exchange);
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
