import { Observable } from 'rxjs';
import type { Dispatcher } from 'undici';
import type { BaseUrl } from './baseUrl.js';
import { failureOf } from './failureOf.js';
import { AnswerReader, headerFailure, type LanePool } from './LanePool.js';
import { TransportFailure, type TransportRequest, type TransportResponse } from './Transport.js';

/** A lane of HTTP/1.1: undici carries it, directly or through a proxy. */
export class Http1Lane implements LanePool {
  constructor(
    readonly dispatcher: Dispatcher,
    readonly baseUrl: BaseUrl,
    readonly mostBytes: number,
  ) {}

  send({ method, path, headers, body }: TransportRequest): Observable<TransportResponse> {
    const { origin, prefix } = this.baseUrl;
    return new Observable((subscriber) => {
      // undici's pool would wait forever behind a request that it cannot send.
      const failure = headerFailure(headers);
      if (failure !== undefined) return subscriber.error(failure);
      const handler = new Handler(subscriber, this.mostBytes);
      try {
        this.dispatcher.dispatch({ origin, path: prefix + path, method, headers, body: body ?? null }, handler);
      } catch (error) {
        subscriber.error(failureOf(error));
      }
      subscriber.add(() => handler.abort());
    });
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  destroy(): Promise<void> {
    return this.dispatcher.destroy();
  }
}

/** undici's lowest interface: a promise and a stream per request would cost more than the rest of it. */
class Handler extends AnswerReader implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | undefined;

  /** Closes the connection, unless the exchange is over. */
  override abort(): void {
    this.#controller?.abort(new TransportFailure('connection', 'the request was given up'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.subscriber.closed) this.abort();
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.start(status, headers);
    if (this.spoilsConnection) this.#endIfWhole();
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.data(chunk);
    if (this.spoilsConnection) this.#endIfWhole();
  }

  onResponseEnd(): void {
    this.#controller = undefined;
    this.end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#controller = undefined;
    const failure = failureOf(error, this.status !== 0);
    // Later: undici must not be given another request while it is failing those of a broken connection.
    process.nextTick(() => this.subscriber.error(failure));
  }

  /** Ends the exchange before undici does, by closing its connection, so that no other request is sent on it. */
  #endIfWhole(): void {
    if (this.isWhole !== true || this.subscriber.closed) return;
    this.end();
    this.abort();
  }
}
