import type { Dispatcher } from 'undici';
import type { BaseUrl } from './baseUrl.js';
import type { Exchange } from './Exchange.js';
import type { Carrier } from './Lanes.js';
import { TransportFailure } from './Transport.js';

/** A lane of HTTP/1.1: an undici pool, with one connection for each request in flight. */
export class Http1Lane implements Carrier {
  constructor(
    readonly dispatcher: Dispatcher,
    readonly baseUrl: BaseUrl,
  ) {}

  send(exchange: Exchange): void {
    const { request, body } = exchange;
    const options: Dispatcher.DispatchOptions = {
      origin: this.baseUrl.origin,
      path: this.baseUrl.prefix + request.path,
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
      this.dispatcher.dispatch(options, new Handler(exchange));
    } catch (error) {
      exchange.fail(error);
    }
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  destroy(): Promise<void> {
    return this.dispatcher.destroy();
  }
}

/** undici's lowest interface: its promises and streams cost more than the rest of a request. */
class Handler implements Dispatcher.DispatchHandler {
  constructor(readonly exchange: Exchange) {}

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
    this.exchange.responseEnd();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.exchange.fail(error);
  }
}
