import { connect as connectHttp2, constants, type ClientHttp2Session, type Settings } from 'node:http2';
import { isIP } from 'node:net';
import { connect as connectSocket, type TLSSocket } from 'node:tls';
import { Observable, type Subscriber } from 'rxjs';
import type { BaseUrl } from './baseUrl.js';
import { failureOf } from './failureOf.js';
import { AnswerReader, headerFailure, type LanePool } from './LanePool.js';
import { TransportFailure, type TransportRequest, type TransportResponse } from './Transport.js';

export interface TlsOptions {
  /** Certificates to trust instead of the usual ones. Default: Node's, with those of `NODE_EXTRA_CA_CERTS`. */
  readonly ca?: string | Buffer;
}

export const CONNECT_TIMEOUT_MS = 10_000;
/** Flow control: what a server may send before it hears from us. The protocol's 64 kB would make every large result slow. */
const SESSION_WINDOW_BYTES = 32 * 1024 * 1024;
const STREAM_WINDOW_BYTES = 8 * 1024 * 1024;
/** The most streams of one connection, even if the server allows more. */
const MOST_STREAMS = 1000;
/** The limit of a server that does not name one. */
const USUAL_STREAMS = 100;
const IDLE_MS = 60_000;
const PING_TIMEOUT_MS = 5000;
/** A stream that a server refuses unread is sent again at once, but not forever. */
const MOST_REFUSALS = 3;
const SESSION_MEMORY_MB = 1024;

/** Opens a TLS connection that offers HTTP/2 and HTTP/1.1; its `alpnProtocol` says what the server has chosen. */
export function connectTls(
  { origin }: BaseUrl,
  options: TlsOptions,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Observable<TLSSocket> {
  return new Observable((subscriber) => {
    const { hostname, port } = new URL(origin);
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connectSocket({
      host,
      port: port === '' ? 443 : Number(port),
      ALPNProtocols: ['h2', 'http/1.1'],
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...options,
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    // Kept for the life of the socket: an error without a listener ends the process.
    socket.on('error', (error) => subscriber.error(failureOf(error)));
    const late = new TransportFailure('timeout', `no connection within ${timeoutMs / 1000} s`);
    const timer = setTimeout(() => subscriber.error(late), timeoutMs);
    let isTaken = false;
    socket.once('secureConnect', () => {
      isTaken = true;
      subscriber.next(socket);
      subscriber.complete();
    });
    return () => {
      clearTimeout(timer);
      if (!isTaken) socket.destroy();
    };
  });
}

/** Closes a connection. A session that only closes waits for the server to close its side, forever if it has stopped. */
function end({ session, socket }: Http2Connection): void {
  session.destroy();
  socket.destroy();
}

/** A request that waits for a connection, or is on one. */
interface Exchange {
  readonly request: TransportRequest;
  readonly subscriber: Subscriber<TransportResponse>;
  refusals: number;
}

/** One connection: many requests at a time, as many as the server allows. */
interface Http2Connection {
  readonly session: ClientHttp2Session;
  readonly socket: TLSSocket;
  streams: number;
  /** 0 until the server has said how many streams it takes, and while it is checked; −1 once the connection takes no more. */
  limit: number;
  hasAnswered: boolean;
}

/**
 * A lane of HTTP/2: as few connections as the server's limit of concurrent streams allows.
 *
 * Node's own client carries it, not undici's: that one takes 1.7 times its CPU, and fails every request in flight when a server asks,
 * as load balancers do now and then, to continue on a new connection (GOAWAY). Here what is in flight finishes on the old one.
 */
export class Http2Lane implements LanePool {
  /** Connections that take new requests. */
  readonly #connections = new Set<Http2Connection>();
  /** All that are not closed yet. */
  readonly #open = new Set<Http2Connection>();
  #waiting: Exchange[] = [];
  #inFlight = 0;
  #opening = 0;
  /** How many streams the server takes on a connection; undefined until it has said it. */
  #usualLimit: number | undefined;
  #onIdle: (() => void)[] | undefined;
  #isDestroyed = false;

  constructor(
    /** Opens a connection that speaks HTTP/2. */
    readonly connect: Observable<TLSSocket>,
    readonly baseUrl: BaseUrl,
    /** Most connections of the lane. */
    readonly limit: number,
    readonly mostBytes: number,
  ) {}

  send(request: TransportRequest): Observable<TransportResponse> {
    return new Observable((subscriber) => {
      // Node would send other characters instead.
      const failure = headerFailure(request.headers);
      if (failure !== undefined) return subscriber.error(failure);
      this.#waiting.push({ request, subscriber, refusals: 0 });
      this.#serve();
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      (this.#onIdle ??= []).push(resolve);
      this.#endWhenIdle();
    });
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    this.#failWaiting(new TransportFailure('connection', 'the client is destroyed'));
    for (const connection of this.#open) end(connection);
    for (const resolve of this.#onIdle ?? []) resolve();
  }

  /** Gives waiting requests to connections that have room, and opens more connections for the rest. */
  #serve(): void {
    while (this.#waiting.length > 0) {
      const room = this.#withRoom();
      if (room === undefined) break;
      const exchange = this.#waiting.shift()!;
      if (!exchange.subscriber.closed) this.#carry(room, exchange);
    }
    if (this.#waiting.length > 0) this.#openMore();
    this.#endWhenIdle();
  }

  #withRoom(): Http2Connection | undefined {
    for (const connection of this.#connections) if (connection.streams < connection.limit) return connection;
    return undefined;
  }

  #openMore(): void {
    this.#waiting = this.#waiting.filter(({ subscriber }) => !subscriber.closed);
    const unsaid = [...this.#connections].filter(({ limit }) => limit === 0).length;
    // One connection is enough to learn how many are needed.
    const needed =
      Math.ceil(this.#waiting.length / (this.#usualLimit ?? Infinity)) || Math.min(this.#waiting.length, 1);
    for (let coming = this.#opening + unsaid; coming < needed; coming++) {
      if (this.#opening + this.#connections.size >= this.limit) break;
      this.#opening++;
      this.connect.subscribe({
        next: (socket) => {
          this.#opening--;
          this.#speak(socket);
        },
        error: (error) => {
          this.#opening--;
          this.#failWaiting(error);
          this.#endWhenIdle();
        },
      });
    }
  }

  #speak(socket: TLSSocket): void {
    if (this.#isDestroyed) return void socket.destroy();
    const session = connectHttp2(this.baseUrl.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEMORY_MB,
    });
    const connection: Http2Connection = { session, socket, streams: 0, limit: 0, hasAnswered: false };
    this.#connections.add(connection);
    this.#open.add(connection);
    let hasSettings = false;
    let failure: unknown = new TransportFailure('connection', 'the server closed the connection at once');
    // Without this, a server that never answers would be waited for forever.
    const silence = setTimeout(() => {
      failure = new TransportFailure('timeout', `no HTTP/2 settings within ${CONNECT_TIMEOUT_MS / 1000} s`);
      session.destroy();
    }, CONNECT_TIMEOUT_MS);
    session.on('remoteSettings', ({ maxConcurrentStreams = USUAL_STREAMS }: Settings) => {
      clearTimeout(silence);
      hasSettings = true;
      if (connection.limit < 0 || session.closed) return;
      connection.limit = this.#usualLimit = Math.max(1, Math.min(maxConcurrentStreams, MOST_STREAMS));
      this.#serve();
      // A program ends when its work is done, also with connections open.
      if (connection.streams === 0) session.unref();
    });
    session.once('connect', () => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
    session.on('goaway', () => {
      this.#retire(connection);
      // What waits must not wait for what is still on this connection.
      this.#serve();
    });
    session.on('error', (error: Error) => {
      failure = error;
      this.#retire(connection);
    });
    session.once('close', () => {
      clearTimeout(silence);
      this.#open.delete(connection);
      this.#retire(connection);
      // Otherwise a server that always hangs up at once would be asked forever.
      if (!hasSettings) this.#failWaiting(failure);
      this.#serve();
    });
    session.setTimeout(IDLE_MS, () => {
      if (connection.streams === 0) this.#retire(connection);
    });
  }

  /** Fails what waits where there is no other connection to wait for. */
  #failWaiting(error: unknown): void {
    if (!this.#isDestroyed && (this.#opening > 0 || this.#connections.size > 0)) return;
    for (const { subscriber } of this.#waiting.splice(0)) subscriber.error(failureOf(error));
  }

  /** No whole answer came, so the connection may be dead: it takes no request until the server has answered a ping. */
  #check(connection: Http2Connection): void {
    const { session, limit } = connection;
    if (limit <= 0 || session.closed || session.destroyed) return;
    connection.limit = 0;
    const dead = setTimeout(() => session.destroy(), PING_TIMEOUT_MS).unref();
    const isSent = session.ping((error) => {
      clearTimeout(dead);
      if (error !== null || connection.limit !== 0) return;
      connection.limit = limit;
      this.#serve();
    });
    if (!isSent) session.destroy();
  }

  /** Nothing new goes over this connection; what is on it may finish. */
  #retire(connection: Http2Connection): void {
    this.#connections.delete(connection);
    connection.limit = -1;
    if (connection.streams === 0) end(connection);
  }

  #carry(connection: Http2Connection, exchange: Exchange): void {
    const { session } = connection;
    const { request, subscriber } = exchange;
    // Assigned one by one: spreading an object with such keys takes many times as long.
    const headers: Record<string, string> = { ':method': request.method, ':path': this.baseUrl.prefix + request.path };
    for (const name in request.headers) headers[name] = request.headers[name]!;
    const wasAnswered = connection.hasAnswered;
    let stream;
    try {
      stream = session.request(headers, { endStream: request.body === undefined });
    } catch (error) {
      if (!session.closed && !session.destroyed) return subscriber.error(failureOf(error));
      // It ended a moment ago, and its event is yet to come. Nothing was sent: another connection carries the request.
      this.#retire(connection);
      return void this.#waiting.unshift(exchange);
    }
    if (connection.streams++ === 0) session.ref();
    this.#inFlight++;
    const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL);
    const answer = new AnswerReader(subscriber, this.mostBytes);
    answer.abort = cancel;
    let isOver = false;
    let failure: Error | undefined;
    stream.on('response', (head) => {
      connection.hasAnswered = true;
      answer.start(head[':status'] ?? 0, head);
      if (answer.spoilsConnection) this.#retire(connection);
    });
    stream.on('data', (chunk: Buffer) => answer.data(chunk));
    stream.on('end', () => {
      // A stream that was reset has no whole answer, even if the server calls that no error: the reset closes it before its end.
      const isEnded = stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted;
      const isWhole = isEnded && (answer.isWhole ?? !stream.closed);
      if (isWhole && answer.status !== 0) {
        isOver = true;
        answer.end();
      }
      if (!stream.writableFinished) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    stream.on('error', (error: Error) => (failure = error));
    stream.once('close', () => {
      this.#inFlight--;
      if (--connection.streams === 0) {
        // Later: Node may be reading from it.
        if (connection.limit < 0) setImmediate(end, connection);
        else if (!session.destroyed) session.unref();
      }
      const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && answer.status === 0;
      isOver = true;
      if (isRefused && !subscriber.closed && exchange.refusals++ < MOST_REFUSALS) this.#waiting.unshift(exchange);
      else if (!subscriber.closed) {
        this.#check(connection);
        // Only a connection that has answered before can be one that the server was about to close.
        const kind = wasAnswered && answer.status === 0 && !this.#isDestroyed ? 'reset' : 'connection';
        const message = failure?.message ?? 'the connection was closed before the answer was complete';
        subscriber.error(new TransportFailure(kind, message, failure));
      }
      this.#serve();
    });
    subscriber.add(() => {
      if (isOver) return;
      cancel();
      if (answer.status === 0) this.#check(connection);
    });
    if (request.body !== undefined) stream.end(request.body);
  }

  #endWhenIdle(): void {
    if (this.#onIdle === undefined || this.#waiting.length + this.#inFlight + this.#opening > 0) return;
    void this.destroy();
  }
}
