import type { ClientHttp2Session, ClientHttp2Stream, Settings } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { BaseUrl } from './baseUrl.js';
import type { Exchange } from './Exchange.js';
import { isHeaderValue } from './headerText.js';
import type { Carrier } from './Lanes.js';
import { CONNECT_TIMEOUT_MS } from './tlsConnect.js';
import { TransportFailure } from './Transport.js';
import { writePieces } from './writePieces.js';

/** Flow control: what a server may send before it hears from us. The protocol's 64 kB would make every large result slow. */
const SESSION_WINDOW_BYTES = 32 * 1024 * 1024;
const STREAM_WINDOW_BYTES = 8 * 1024 * 1024;
/** The most streams of one connection, even if the server allows more. */
const MOST_STREAMS = 1000;
/** The limit of a server that does not name one. */
const USUAL_STREAMS = 100;
const IDLE_MS = 60_000;
/** A stream that a server refuses unread is sent again at once, but not for ever. */
const MOST_REFUSALS = 3;
const SESSION_MEMORY_MB = 1024;
/** Loaded when a server speaks HTTP/2: it takes as long as the rest of a first request. */
const http2 = () => process.getBuiltinModule('node:http2');

export interface Http2LaneOptions {
  readonly baseUrl: BaseUrl;
  /** Opens a connection that speaks HTTP/2. */
  readonly connect: (done: (error: unknown, socket?: TLSSocket) => void) => void;
  /** Most connections of the lane. */
  readonly connections: number;
}

/** One connection: many requests at a time, as many as the server allows. */
interface Connected {
  readonly session: ClientHttp2Session;
  streams: number;
  /** 0 until the server has said how many streams it takes. */
  limit: number;
}

/**
 * A lane of HTTP/2: as few connections as the server's limit of concurrent streams allows.
 *
 * Node's own client carries it, not undici's: that one opens a connection for each request of a burst, and fails every
 * request in flight when a server asks, as load balancers do now and then, to go on with a new connection (GOAWAY). Here
 * what is in flight finishes on the old one.
 */
export class Http2Lane implements Carrier {
  readonly #options: Http2LaneOptions;
  /** Those that take new requests. */
  readonly #connected = new Set<Connected>();
  /** All that are not closed yet, also those that only finish what they carry. */
  readonly #sessions = new Set<ClientHttp2Session>();
  readonly #streams = new Set<Exchange>();
  #waiting: Exchange[] = [];
  #opening = 0;
  /** How many streams the server takes on a connection; undefined until it has said it. */
  #usualLimit: number | undefined;
  #closing: (() => void) | undefined;
  #closed = false;

  constructor(options: Http2LaneOptions) {
    this.#options = options;
  }

  /** Starts with a connection that is already open. */
  adopt(socket: TLSSocket): void {
    this.#speak(socket);
  }

  send(exchange: Exchange): void {
    if (this.#closed) return exchange.fail(new Error('the connection is closed'));
    this.#waiting.push(exchange);
    this.#serve();
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#closing = resolve;
      this.#endWhenIdle();
    });
  }

  destroy(): Promise<void> {
    this.#closed = true;
    const open = [...this.#waiting.splice(0), ...this.#streams];
    for (const exchange of open) exchange.fail(new Error('the connection is closed'));
    const closed = [...this.#sessions].map(
      (session) =>
        new Promise<void>((resolve) => {
          session.once('close', resolve);
          session.destroy();
        }),
    );
    return Promise.all(closed).then(() => this.#closing?.());
  }

  /** Gives waiting requests to connections that have room, and opens more connections for the rest. */
  #serve(): void {
    while (this.#waiting.length > 0) {
      const room = this.#withRoom();
      if (room === undefined) break;
      const exchange = this.#waiting.shift()!;
      if (!exchange.settled) this.#carry(room, exchange);
    }
    if (this.#waiting.length > 0) this.#openMore();
    else this.#endWhenIdle();
  }

  #openMore(): void {
    this.#waiting = this.#waiting.filter((exchange) => !exchange.settled);
    const unsaid = [...this.#connected].filter(({ limit }) => limit === 0).length;
    // One connection is enough to learn how many are needed.
    const perConnection = this.#usualLimit ?? Infinity;
    const needed = Math.max(Math.ceil(this.#waiting.length / perConnection), Math.min(this.#waiting.length, 1));
    for (let coming = this.#opening + unsaid; coming < needed; coming++) {
      if (this.#opening + this.#connected.size >= this.#options.connections) break;
      this.#open();
    }
    this.#endWhenIdle();
  }

  #withRoom(): Connected | undefined {
    for (const connected of this.#connected) if (connected.streams < connected.limit) return connected;
    return undefined;
  }

  #open(): void {
    this.#opening++;
    this.#options.connect((error, socket) => {
      this.#opening--;
      if (socket !== undefined && !this.#closed) return this.#speak(socket);
      socket?.destroy();
      this.#failWaiting(error ?? new Error('the connection is closed'));
      this.#endWhenIdle();
    });
  }

  #speak(socket: TLSSocket): void {
    const session = http2().connect(this.#options.baseUrl.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEMORY_MB,
    });
    const connected: Connected = { session, streams: 0, limit: 0 };
    this.#connected.add(connected);
    this.#sessions.add(session);
    let failure: unknown;
    let hasSaid = false;
    // Without this, a server that never answers would be waited for forever.
    const silence = setTimeout(() => {
      failure = new TransportFailure('timeout', `no HTTP/2 settings within ${CONNECT_TIMEOUT_MS / 1000} s`);
      session.destroy();
    }, CONNECT_TIMEOUT_MS);
    session.on('remoteSettings', ({ maxConcurrentStreams = USUAL_STREAMS }: Settings) => {
      clearTimeout(silence);
      hasSaid = true;
      if (session.closed || session.destroyed) return;
      connected.limit = this.#usualLimit = Math.max(1, Math.min(maxConcurrentStreams, MOST_STREAMS));
      this.#serve();
      // A program ends when its work is done, also with connections open.
      if (connected.streams === 0) session.unref();
    });
    session.once('connect', () => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
    session.on('goaway', () => this.#retire(connected));
    session.on('error', (error: Error) => {
      failure = error;
      this.#retire(connected);
    });
    session.once('close', () => {
      clearTimeout(silence);
      this.#sessions.delete(session);
      this.#retire(connected);
      // Otherwise a server that always hangs up at once would be asked forever.
      if (!hasSaid) this.#failWaiting(failure ?? new Error('the server closed the connection at once'));
      this.#serve();
    });
    session.setTimeout(IDLE_MS, () => {
      if (connected.streams === 0) session.close();
    });
    session.ref();
  }

  /** Fails what waits where there is no other connection to wait for. */
  #failWaiting(error: unknown): void {
    if (this.#opening > 0 || this.#connected.size > 0) return;
    for (const exchange of this.#waiting.splice(0)) exchange.fail(error);
  }

  /** Nothing new goes over this connection; what is on it may finish. */
  #retire(connected: Connected): void {
    this.#connected.delete(connected);
    connected.limit = -1;
    if (!connected.session.closed && !connected.session.destroyed) connected.session.close();
  }

  #carry(connected: Connected, exchange: Exchange): void {
    const { request } = exchange;
    const { session } = connected;
    const { constants } = http2();
    const path = this.#options.baseUrl.prefix + request.path;
    let stream: ClientHttp2Stream;
    let body: Uint8Array | undefined;
    // Assigned one by one: spreading an object with such keys takes many times as long.
    const headers: Record<string, string> = { ':method': request.method, ':path': path };
    for (const name in request.headers) {
      const value = request.headers[name]!;
      // Node would send other characters instead.
      if (!isHeaderValue(value)) return exchange.fail(new TransportFailure('request', `invalid ${name} header`));
      headers[name] = value;
    }
    try {
      ({ body } = exchange);
      stream = session.request(headers, { endStream: body === undefined });
    } catch (error) {
      if (session.closed || session.destroyed) this.#retire(connected);
      return exchange.fail(error);
    }
    if (connected.streams++ === 0) session.ref();
    this.#streams.add(exchange);
    stream.on('response', (headers) => exchange.responseStart(headers[':status'] ?? 0, headers));
    stream.on('data', (chunk: Buffer) => exchange.responseData(chunk));
    stream.on('end', () => {
      // If the stream was reset, the answer is incomplete.
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted && exchange.answered) exchange.responseEnd();
      if (!stream.writableFinished) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    let failure: Error | undefined;
    stream.on('error', (error: Error) => (failure = error));
    stream.once('close', () => {
      this.#streams.delete(exchange);
      if (--connected.streams === 0 && !session.destroyed) session.unref();
      const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && !exchange.answered;
      if (isRefused && !exchange.settled && exchange.restarts < MOST_REFUSALS) {
        // The server did nothing with it: it goes out again at once.
        exchange.restart();
        this.#waiting.unshift(exchange);
      } else if (!exchange.settled)
        exchange.fail(failure ?? new Error('the connection was closed before the answer was complete'));
      this.#serve();
    });
    exchange.begin(() => {
      // If no answer comes, the connection may be dead: the next request gets a new one.
      if (!exchange.answered && exchange.isLate) this.#retire(connected);
      stream.close(constants.NGHTTP2_CANCEL);
    });
    if (exchange.isLarge) writePieces(stream, exchange.pieces(), () => stream.end());
    else if (body !== undefined) stream.end(body);
  }

  #endWhenIdle(): void {
    if (this.#closing === undefined || this.#waiting.length > 0 || this.#streams.size > 0 || this.#opening > 0) return;
    const done = this.#closing;
    this.#closing = undefined;
    void this.destroy().then(done);
  }
}
