import type { Client, Dispatcher } from 'undici';
import type { BaseUrl } from '../baseUrl.js';
import type { Exchange } from '../Exchange.js';
import type { Carrier } from '../Lanes.js';
import { TransportFailure } from '../Transport.js';
import type { Http1Connection } from './Http1Connection.js';

/** A lane of HTTP/1.1 over a dispatcher of undici that finds its connections by itself, as the one for proxies does. */
export class UndiciLane implements Carrier {
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

/** A connection of undici's, for HTTP/1.1 over TLS. */
export class UndiciConnection implements Http1Connection {
  constructor(
    readonly client: Client,
    readonly baseUrl: BaseUrl,
  ) {}

  carry(exchange: Exchange, onDone: () => void): void {
    dispatch(this.client, this.baseUrl, exchange, onDone);
  }

  async close(): Promise<void> {
    if (!this.client.destroyed) await this.client.close();
  }

  destroy(): Promise<void> {
    return this.client.destroy();
  }
}

/** Hands an exchange to undici. `onDone` is called once, when its connection has no more to do with it. */
function dispatch(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  { origin, prefix }: BaseUrl,
  exchange: Exchange,
  onDone?: () => void,
): void {
  try {
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
    // Later: a connection that could not be opened must not be given another request while undici fails those it has.
    process.nextTick(() => {
      this.onDone?.();
      this.exchange.fail(error);
    });
  }
}
