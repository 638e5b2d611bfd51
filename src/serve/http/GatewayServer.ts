import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenOn } from '../../support/http/listen.js';
import { checkSource, keyOf, type Access, type GatewayKey, answerBrowser } from './access.js';
import type { Endpoint, Gateway } from './Endpoint.js';
import { GatewayError, toGatewayError } from './GatewayError.js';
import { Metrics, type AccessEntry } from './Metrics.js';
import { readJson } from './readJson.js';
import { sendAnswer, sendRefusal, type SendOptions } from './sendAnswer.js';

/** An endpoint found for a path, with the gateway it works with (a recorded session has a separate one). */
export interface Route {
  /** The path as the gateway knows it, for metrics. */
  readonly name: string;
  readonly endpoint: Endpoint;
  readonly gateway: Gateway;
  /** The error as this API writes it. */
  readonly refusal: (error: GatewayError) => object;
}

export interface GatewayServerOptions extends SendOptions {
  readonly host: string;
  readonly port: number;
  readonly access: Access;
  readonly maxBodyBytes: number;
  readonly maxRequests: number;
  /** Most time for a body to arrive. */
  readonly bodyTimeoutMs: number;
  readonly newId: () => string;
  readonly reachable: () => boolean;
  readonly onRequest: (entry: AccessEntry) => void;
  readonly find: (method: string, path: string, key: GatewayKey) => Route | undefined;
  /** How errors of a path are written, also for a caller without a key. */
  readonly refusalOf: (path: string) => Route['refusal'];
}

/** Load balancers keep idle connections for 60 s; one that is closed on this side first loses a request. */
const KEEP_ALIVE_MS = 75_000;
const PLAIN_ID = /^[\w.:-]{1,128}$/;

/**
 * Carries requests to their endpoint and answers back. A caller that hangs up cancels what it asked for; one that reads
 * slowly holds up nobody else, and is cut off when it reads nothing.
 */
export class GatewayServer {
  readonly metrics = new Metrics();
  readonly #server: Server;
  readonly #activeOf = new Map<GatewayKey, number>();
  #active = 0;
  #draining = false;

  constructor(private readonly options: GatewayServerOptions) {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.requestTimeout = options.bodyTimeoutMs;
    this.#server.headersTimeout = Math.min(options.bodyTimeoutMs, 60_000);
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
  }

  listen(): Promise<AddressInfo> {
    return listenOn(this.#server, this.options.port, this.options.host);
  }

  /** Cuts every connection, which cancels what is in flight. */
  cancelAll(): void {
    this.#server.closeAllConnections();
  }

  /** Stops listening, and lets what is in flight end for `drainMs`; then it is cancelled. */
  close(drainMs: number): Promise<void> {
    this.#draining = true;
    return new Promise((resolve) => {
      const cut = setTimeout(() => this.cancelAll(), drainMs);
      this.#server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedMs = performance.now();
    const { method = 'GET', headers } = request;
    const given = headers['x-request-id'];
    const requestId = typeof given === 'string' && PLAIN_ID.test(given) ? given : this.options.newId();
    response.setHeader('x-request-id', requestId);
    // A connection that was kept alive must not bring another request.
    if (this.#draining) response.setHeader('connection', 'close');
    let path = '';
    let route: Route | undefined;
    let key: GatewayKey | undefined;
    try {
      path = pathOf(request.url);
      // Anthropic's clients read this name.
      if (path.includes('/v1/messages')) response.setHeader('request-id', requestId);
      if (method === 'GET' && path === '/healthz') return this.#health(response);
      checkSource(request, this.options.access);
      if (answerBrowser(request, response)) return;
      key = keyOf(request, this.options.access);
      if (method === 'GET' && path === '/metrics') return this.#metrics(response);
      route = this.options.find(method, path, key);
      if (route === undefined) throw new GatewayError(404, `there is no ${method} ${path} here`);
      await this.#answer(request, response, { ...route, requestId }, key);
    } catch (error) {
      sendRefusal(toGatewayError(error), response, route?.refusal ?? this.options.refusalOf(path));
    } finally {
      const status = response.headersSent ? response.statusCode : 499;
      const durationMs = performance.now() - startedMs;
      const entry = { requestId, method, path, status, durationMs, key: key?.name };
      if (route !== undefined) this.metrics.request(route.name, entry);
      this.options.onRequest(entry);
      // Its connection is kept alive, and would keep the server open.
      if (this.#draining) setImmediate(() => this.#server.closeIdleConnections());
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { endpoint, gateway, refusal, requestId }: Route & { readonly requestId: string },
    key: GatewayKey,
  ): Promise<void> {
    const { maxRequests, maxBodyBytes } = this.options;
    const ofKey = this.#activeOf.get(key) ?? 0;
    const busy = (): never => {
      throw new GatewayError(429, 'too many requests at once', undefined, { retryAfterSeconds: 1 });
    };
    if (this.#active >= maxRequests || ofKey >= (key.maxRequests ?? Infinity)) busy();
    this.#active++;
    this.#activeOf.set(key, ofKey + 1);
    try {
      const body = request.method === 'GET' ? undefined : await readJson(request, maxBodyBytes);
      const answers = endpoint(body, gateway, { requestId, headers: request.headers });
      await sendAnswer(answers, response, refusal, this.options);
    } finally {
      this.#active--;
      this.#activeOf.set(key, this.#activeOf.get(key)! - 1);
    }
  }

  #health(response: ServerResponse): void {
    const service = this.options.reachable() ? 'reachable' : 'unreachable';
    const status = this.#draining ? 'draining' : 'ok';
    response.writeHead(this.#draining ? 503 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ status, service }));
  }

  #metrics(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' });
    response.end(this.metrics.text({ active: this.#active, reachable: this.options.reachable() }));
  }
}

/** Nothing in it that a URL would write differently. */
const PLAIN_PATH = /^\/[\w/-]*$/;

function pathOf(url: string | undefined): string {
  if (url !== undefined && PLAIN_PATH.test(url) && !url.startsWith('//')) return url;
  if (url === undefined || !URL.canParse(url, 'http://gateway'))
    throw new GatewayError(400, 'this address cannot be read');
  return new URL(url, 'http://gateway').pathname;
}
