import { connect, type Socket } from 'node:net';
import type { BaseUrl } from '../baseUrl.js';
import type { Deadlines, Due } from '../Deadlines.js';
import type { Exchange } from '../Exchange.js';
import { TransportFailure } from '../Transport.js';
import { writePieces } from '../writePieces.js';
import { AnswerReader } from './AnswerReader.js';
import type { Http1Connection } from './Http1Connection.js';
import { endOfHead, requestHead } from './requestHead.js';

const TCP_KEEP_ALIVE_MS = 60_000;

export interface PlainConnectionOptions {
  readonly baseUrl: BaseUrl;
  readonly connectTimeoutMs: number;
  readonly deadlines: Deadlines;
  /**
   * Where all connections read into, one after the other; what is kept is copied out. By default, Node would allocate 64 KiB for every
   * answer.
   */
  readonly readBuffer: Buffer;
}

/**
 * A connection of HTTP/1.1 over plain TCP, for servers of one's own: on this machine, in this cluster.
 *
 * A bare poll of undici takes more than twice the CPU that its socket takes alone; `bench/waiting.mjs` compares the two clients. The
 * path of a request: `carry`, `#connect` where there is no socket, `#send`, `#read` for what arrives, `#answered`.
 */
export class PlainConnection implements Http1Connection, Due {
  /** When it has been idle for too long. */
  dueMs = Infinity;
  readonly #options: PlainConnectionOptions;
  /** What the `host` header says. */
  readonly #host: string;
  readonly #address: { readonly host: string; readonly port: number };
  readonly #reader = new AnswerReader();
  #socket: Socket | undefined;
  #exchange: Exchange | undefined;
  #onDone: (() => void) | undefined;
  #head = '';
  /** Whether pieces of the request are still to be sent. */
  #isSending = false;
  /** Whether it is watched as idle, and its socket does not keep the process alive. */
  #isResting = false;
  #onIdle: (() => void) | undefined;

  constructor(options: PlainConnectionOptions) {
    this.#options = options;
    const { host, hostname, port } = new URL(options.baseUrl.origin);
    this.#host = host;
    this.#address = { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) };
  }

  carry(exchange: Exchange, onDone: () => void): void {
    const { request } = exchange;
    this.#exchange = exchange;
    this.#onDone = onDone;
    try {
      this.#head = requestHead(request, this.#options.baseUrl.prefix + request.path, this.#host);
    } catch (error) {
      return this.#done()?.fail(error);
    }
    if (this.#isResting) this.#wake();
    if (this.#socket === undefined) this.#connect();
    else this.#send(this.#socket, exchange);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#endWhenIdle();
    });
  }

  async destroy(): Promise<void> {
    const socket = this.#socket;
    this.#fail(new TransportFailure('connection', 'the client is destroyed'));
    if (socket !== undefined && !socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  }

  /** It has been idle for too long. */
  late(): void {
    if (this.#exchange === undefined) this.#drop();
  }

  #connect(): void {
    const { connectTimeoutMs, readBuffer } = this.#options;
    const socket = connect({
      ...this.#address,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          if (socket === this.#socket) this.#read(length);
          return true;
        },
      },
    });
    this.#socket = socket;
    let failure: Error | undefined;
    const timeout = setTimeout(() => {
      failure = new TransportFailure('timeout', `no connection within ${connectTimeoutMs / 1000} s`);
      socket.destroy();
    }, connectTimeoutMs);
    socket.once('connect', () => {
      clearTimeout(timeout);
      if (socket === this.#socket && this.#exchange !== undefined) this.#send(socket, this.#exchange);
    });
    socket.on('error', (error) => (failure ??= error));
    socket.once('end', () => {
      if (socket !== this.#socket) return;
      if (this.#exchange === undefined) this.#drop();
      else if (this.#reader.end()) this.#answered(false);
    });
    socket.once('close', () => {
      clearTimeout(timeout);
      if (socket === this.#socket) this.#fail(failure ?? this.#closedEarly());
    });
  }

  #closedEarly(): TransportFailure {
    const when = this.#exchange?.answered === true ? 'before its answer was complete' : 'without an answer';
    return new TransportFailure('connection', `the server closed the connection ${when}`);
  }

  #send(socket: Socket, exchange: Exchange): void {
    if (exchange.settled) {
      // Cancelled while it waited for the connection.
      this.#done();
      return this.#restWhenIdle();
    }
    const { method } = exchange.request;
    let [content, contentLength]: [Exchange['content'], number] = [undefined, 0];
    try {
      ({ content, contentLength } = exchange);
    } catch (error) {
      this.#done()?.fail(error);
      return this.#restWhenIdle();
    }
    this.#reader.restart();
    exchange.begin(() => this.#abort(exchange));
    const head = this.#head + endOfHead(method, contentLength);
    this.#head = '';
    if (exchange.isLarge) {
      this.#isSending = true;
      socket.write(head, 'latin1');
      writePieces(socket, exchange.pieces(), () => {
        if (socket === this.#socket) this.#isSending = false;
      });
    } else if (typeof content === 'string' && content.length === contentLength) {
      // Text of one byte per character: one write, and no bytes to allocate.
      socket.write(head + content, 'latin1');
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      if (contentLength > 0) socket.write(exchange.body!);
      socket.uncork();
    }
  }

  #abort(exchange: Exchange): void {
    // When it is cancelled by what follows from its own end, the connection carries another already.
    if (this.#exchange !== exchange) return;
    this.#drop();
    this.#done();
  }

  #read(length: number): void {
    const exchange = this.#exchange;
    // Nothing was asked for, so this is no answer.
    if (exchange === undefined) return this.#drop();
    let end: number | undefined;
    try {
      end = this.#reader.read(this.#options.readBuffer.subarray(0, length), exchange);
    } catch (error) {
      if (this.#exchange === exchange) this.#fail(error);
      return;
    }
    // An answer that is too large is given up while it is read, and the connection may carry another exchange by now.
    if (end !== undefined && this.#exchange === exchange) this.#answered(end === length);
  }

  #answered(isAllRead: boolean): void {
    if (!isAllRead || !this.#reader.keepsOpen || this.#isSending) this.#drop();
    this.#done()?.responseEnd();
    // Usually the answer is followed by another request.
    this.#restWhenIdle();
  }

  #fail(error: unknown): void {
    this.#drop();
    this.#done()?.fail(error);
  }

  /** Ends the exchange. What follows from its answer finds the connection free. */
  #done(): Exchange | undefined {
    const exchange = this.#exchange;
    const onDone = this.#onDone;
    this.#exchange = this.#onDone = undefined;
    onDone?.();
    this.#endWhenIdle();
    return exchange;
  }

  /** The socket is free for a while. The program may end meanwhile. */
  #restWhenIdle(): void {
    if (this.#exchange !== undefined || this.#socket === undefined) return;
    this.#isResting = true;
    this.dueMs = performance.now() + this.#reader.keepAliveMs;
    this.#options.deadlines.watch(this);
    this.#socket.unref();
  }

  #wake(): void {
    this.#isResting = false;
    this.#options.deadlines.forget(this);
    // The timer may be late, and so may the news that a socket was reset.
    if (this.dueMs <= performance.now() || this.#socket?.destroyed === true) this.#drop();
    else this.#socket?.ref();
  }

  #drop(): void {
    if (this.#isResting) this.#options.deadlines.forget(this);
    this.#isResting = this.#isSending = false;
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #endWhenIdle(): void {
    if (this.#onIdle === undefined || this.#exchange !== undefined) return;
    const onIdle = this.#onIdle;
    this.#onIdle = undefined;
    void this.destroy().then(onIdle);
  }
}
