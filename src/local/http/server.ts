import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { allowsName, hostName, isLoopback } from '../../support/http/access.js';
import { close, listenOn } from '../../support/http/listen.js';
import type { Fault } from '../controls/faults.js';
import { toFailure } from '../queue/failure.js';
import { readBody } from './body.js';
import { ByteBudget } from './byteBudget.js';
import { HttpError } from './httpError.js';
import { json, text, type Reply, type ReplyHeaders } from './reply.js';
import { RequestContext } from './requestContext.js';
import type { Router } from './router.js';
import type { SeenRequest, SeenResponse } from './seen.js';

const API_PREFIX = '/api/v1/';
const HEADERS_TIMEOUT_MS = 60_000;
/** How many bodies of the largest size are held at once; further ones wait. */
const LARGEST_BODIES = 4;
/** How long a client that was refused may take to read the answer before its connection is cut. */
const GRACE_MS = 500;

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly maxRequestBytes: number;
  /** A request that has not arrived as a whole after this long is cut; 0 is never. */
  readonly requestTimeoutMs: number;
  readonly router: Router;
  /** Whether the request may be carried out; signed URLs prove themselves. */
  readonly authorize: (context: RequestContext) => boolean;
  readonly latencyMs: (endpoint: string) => number;
  readonly nextFault: (method: string, endpoint: string) => Fault | undefined;
  readonly onPause: (fault: Extract<Fault, { type: 'pause' }>) => void;
  readonly onRequest?: ((request: SeenRequest) => void) | undefined;
  readonly onResponse?: ((response: SeenResponse) => void) | undefined;
  readonly writeError: (error: HttpError) => Reply;
}

/** Carries requests from the socket to their endpoint and the answers back, with the faults that were ordered. */
export class HttpServer {
  readonly #server: Server;
  readonly #bodies: ByteBudget;

  constructor(private readonly options: HttpServerOptions) {
    const { requestTimeoutMs: requestTimeout, maxRequestBytes } = options;
    this.#bodies = new ByteBudget(LARGEST_BODIES * maxRequestBytes);
    this.#server = createServer(
      {
        // Only until the request has arrived: the answer to a long poll may take longer.
        requestTimeout,
        headersTimeout: requestTimeout === 0 ? HEADERS_TIMEOUT_MS : Math.min(requestTimeout, HEADERS_TIMEOUT_MS),
        connectionsCheckingInterval: Math.max(50, Math.min(requestTimeout / 4 || Infinity, 10_000)),
        keepAliveTimeout: 65_000,
      },
      (request, response) => void this.#serve(request, response),
    );
  }

  listen(): Promise<AddressInfo> {
    return listenOn(this.#server, this.options.port, this.options.host);
  }

  /** Stops listening and cuts every connection. */
  close(): Promise<void> {
    return close(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    let seen: SeenRequest | undefined;
    let status = 0;
    let release: (() => void) | undefined;
    try {
      const { context, releaseBody } = await this.#read(request, gone.signal);
      release = releaseBody;
      seen = see(context);
      this.options.onRequest?.(seen);
      const fault = this.options.nextFault(context.method, context.endpoint);
      await delay(this.options.latencyMs(context.endpoint) + (fault?.type === 'delay' ? fault.delayMs : 0));
      if (fault?.type === 'pause') this.options.onPause(fault);
      if (fault?.type === 'reset' && fault.when !== 'after') return reset(request.socket);
      const reply = fault?.type === 'status' ? faultReply(fault) : await this.#answer(context);
      if (fault?.type === 'reset' || gone.signal.aborted) return reset(request.socket);
      status = reply.status;
      if (fault?.type === 'truncate')
        truncate(response, reply.status, reply.headers, await contentOf(reply), fault.keepBytes);
      else await write(response, reply);
    } catch (error) {
      const reply = this.options.writeError(toHttpError(error));
      status = reply.status;
      await write(response, request.complete ? reply : cutting(request, reply)).catch(() => undefined);
    } finally {
      release?.();
      if (seen !== undefined) {
        this.options.onResponse?.({ request: seen, status, durationMs: performance.now() - startedAt });
      }
    }
  }

  /** Checks who asks before reading what they send. */
  async #read(
    request: IncomingMessage,
    signal: AbortSignal,
  ): Promise<{ readonly context: RequestContext; readonly releaseBody?: () => void }> {
    const { host } = request.headers;
    if (isLoopback(this.options.host) && !allowsName(hostName(host ?? ''), this.options.host))
      throw new HttpError(403, 'this Host header is not allowed here');
    const url = urlOf(request);
    if (!url.pathname.startsWith(API_PREFIX)) throw new HttpError(404, 'not found');
    const endpoint = url.pathname.slice(API_PREFIX.length);
    const make = (body: Buffer) =>
      new RequestContext(
        request.method ?? 'GET',
        endpoint,
        {},
        url.searchParams,
        request.headers,
        body,
        `http://${host ?? 'localhost'}`,
        signal,
      );
    if (!this.options.authorize(make(Buffer.alloc(0)))) throw new HttpError(401, 'a valid X-API-Key header is needed');
    // Nothing is read of a GET, which may come without the key.
    if (request.method === 'GET') return { context: make(Buffer.alloc(0)) };
    const { bytes, release } = await readBody(request, this.options.maxRequestBytes, this.#bodies);
    return { context: make(bytes), releaseBody: release };
  }

  async #answer(context: RequestContext): Promise<Reply> {
    const match = this.options.router.find(context.method, context.endpoint);
    if (match === undefined) throw new HttpError(404, 'not found');
    if (match === 'method') throw new HttpError(405, 'method not allowed');
    return match.route.handle(context.with(match.params));
  }
}

const delay = (ms: number): Promise<void> =>
  ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : Promise.resolve();

/** What a request asks for. A path may start with two slashes, which is not the start of a host here. */
function urlOf({ url = '/' }: IncomingMessage): URL {
  try {
    return url.startsWith('/') ? new URL(`http://local${url}`) : new URL(url);
  } catch {
    throw new HttpError(400, 'this is not a valid path');
  }
}

/** The refusal of a request whose body has not arrived: what is still coming is dropped, and soon the connection is cut. */
function cutting(request: IncomingMessage, reply: Reply): Reply {
  request.resume();
  // A client that has gone away took its socket with it.
  const socket = request.socket as Socket | null;
  setTimeout(() => socket?.destroy(), GRACE_MS).unref();
  return { ...reply, headers: { ...reply.headers, connection: 'close' } };
}

const reset = (socket: Socket | null): void => void socket?.resetAndDestroy();

function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  const { error: message, category } = toFailure(error);
  return category === 'user' ? new HttpError(400, message) : new HttpError(500, `internal error: ${message}`);
}

function see(context: RequestContext): SeenRequest {
  const { method, endpoint, query, headers, body } = context;
  return {
    method,
    endpoint,
    query,
    headers,
    body,
    get json(): unknown {
      try {
        return context.json();
      } catch {
        return undefined;
      }
    },
  };
}

function faultReply(fault: Extract<Fault, { type: 'status' }>): Reply {
  const { status, detail = 'injected fault', body, retryAfter, retryAfterMs, headers } = fault;
  const all = {
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    ...(retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) }),
    ...headers,
  };
  if (typeof body === 'string') return { ...text(body, status), headers: { 'content-type': 'text/plain', ...all } };
  return json(body ?? { detail }, status, all);
}

async function write(response: ServerResponse, { status, headers, body }: Reply): Promise<void> {
  if (body instanceof Uint8Array) {
    const hasBody = status !== 204 && status !== 304;
    response.writeHead(status, { ...headers, ...(hasBody ? { 'content-length': body.byteLength } : {}) });
    response.end(body);
    return;
  }
  const { file, first = 0, last = (await stat(file)).size - 1 } = body;
  response.writeHead(status, { ...headers, 'content-length': last - first + 1 });
  // A stream cannot be asked for no bytes at all.
  if (last < first) response.end();
  else await pipeline(createReadStream(file, { start: first, end: last }), response);
}

const contentOf = async ({ body }: Reply): Promise<Uint8Array> =>
  body instanceof Uint8Array
    ? body
    : (await readFile(body.file)).subarray(body.first ?? 0, body.last === undefined ? undefined : body.last + 1);

/** Promises the whole body, sends a part of it and cuts the connection. */
function truncate(
  response: ServerResponse,
  status: number,
  headers: ReplyHeaders,
  whole: Uint8Array,
  keepBytes = Math.floor(whole.length / 2),
): void {
  response.writeHead(status, { ...headers, 'content-length': whole.byteLength });
  response.write(whole.subarray(0, keepBytes), () => response.destroy());
}
