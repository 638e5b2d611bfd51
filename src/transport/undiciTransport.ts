import { Observable } from 'rxjs';
import { EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import type { BaseUrl } from './baseUrl.js';
import {
  LANES,
  TransportFailure,
  type Lane,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from './Transport.js';

export interface UndiciTransportOptions {
  readonly baseUrl: BaseUrl;
  /** Most connections of each lane. Default: no limit for polls, which each hold one; 128 for the others. */
  readonly connections?: Partial<Readonly<Record<Lane, number>>>;
  /** Default: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are respected when set. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export interface UndiciTransport {
  readonly transport: Transport;
  /** Waits for what is in flight, then closes every connection. */
  close(): Promise<void>;
  /** Fails what is in flight and closes every connection. */
  destroy(): Promise<void>;
}

const DEFAULT_CONNECTIONS: Partial<Record<Lane, number>> = {
  session: 8,
  training: 128,
  sampling: 128,
  telemetry: 2,
  rest: 32,
};
const CONNECT_TIMEOUT_MS = 10_000;

/** Real sockets: one undici pool a lane, made when the lane is first used. */
export function undiciTransport(options: UndiciTransportOptions): UndiciTransport {
  const { baseUrl, connections = {}, environment = process.env } = options;
  const lanes = new Map<Lane, Dispatcher>();
  const retired = new Set<Promise<void>>();

  const open = (lane: Lane): Dispatcher => {
    const limit = connections[lane] ?? DEFAULT_CONNECTIONS[lane] ?? null;
    const settings = {
      connections: limit,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    return usesProxy(environment) ? new EnvHttpProxyAgent(settings) : new Pool(baseUrl.origin, settings);
  };
  const dispatcherOf = (lane: Lane): Dispatcher => {
    const dispatcher = lanes.get(lane) ?? open(lane);
    lanes.set(lane, dispatcher);
    return dispatcher;
  };
  const retire = (lane: Lane): void => {
    const dispatcher = lanes.get(lane);
    if (dispatcher === undefined) return;
    lanes.delete(lane);
    const closing = dispatcher.close().finally(() => retired.delete(closing));
    retired.add(closing);
  };

  const send = (request: TransportRequest): Observable<TransportResponse> =>
    new Observable((subscriber) => {
      const handler = new ResponseCollector(
        (response) => {
          // A 400 without a body comes from a proxy that has tired of the connection, not from the service.
          if (response.status === 400 && response.body.length === 0) retire(request.lane);
          subscriber.next(response);
          subscriber.complete();
        },
        (error) => subscriber.error(error),
      );
      try {
        dispatcherOf(request.lane).dispatch(dispatchOptions(baseUrl, request), handler);
      } catch (error) {
        subscriber.error(new TransportFailure('connection', 'the connection is closed', error));
      }
      return () => handler.abort();
    });

  const transport: Transport = Object.assign(send, { timesOut: true });

  const end = async (how: 'close' | 'destroy'): Promise<void> => {
    const open = LANES.flatMap((lane) => lanes.get(lane) ?? []);
    lanes.clear();
    await Promise.all([...open.map((dispatcher) => dispatcher[how]()), ...retired]);
  };
  return { transport, close: () => end('close'), destroy: () => end('destroy') };
}

const usesProxy = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].some((name) => (environment[name] ?? '') !== '');

const dispatchOptions = (baseUrl: BaseUrl, request: TransportRequest): Dispatcher.DispatchOptions => ({
  origin: baseUrl.origin,
  path: baseUrl.prefix + request.path,
  method: request.method,
  headers: request.headers,
  body: request.body ?? null,
  headersTimeout: request.timeoutMs,
  bodyTimeout: request.timeoutMs,
});

/** Collects one response; undici's lowest interface, since its promises and streams cost more than the rest of a request. */
class ResponseCollector implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #chunks: Buffer[] = [];
  #settled = false;
  #aborted = false;

  constructor(
    readonly onResponse: (response: TransportResponse) => void,
    readonly onFailure: (error: TransportFailure) => void,
  ) {}

  abort(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#aborted = true;
    this.#controller?.abort(new TransportFailure('connection', 'the request was cancelled'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new TransportFailure('connection', 'the request was cancelled'));
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#headers = {};
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) this.#headers[name] = typeof value === 'string' ? value : value.join(', ');
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    this.#settled = true;
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.onResponse({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#settled) return;
    this.#settled = true;
    const kind = /TIMEOUT/.test((error as { code?: string }).code ?? '') ? 'timeout' : 'connection';
    this.onFailure(new TransportFailure(kind, error.message, error));
  }
}
