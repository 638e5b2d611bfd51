import type { TLSSocket } from 'node:tls';
import type { BaseUrl } from './baseUrl.js';
import type { Exchange } from './Exchange.js';
import { Http2Lane } from './http2.js';
import { tlsConnect, type TlsOptions } from './tlsConnect.js';
import { TransportFailure } from './Transport.js';

export interface NegotiationOptions {
  readonly baseUrl: BaseUrl;
  readonly tls: TlsOptions;
  /** The server has stopped speaking HTTP/2: its lanes are of no use any more. */
  readonly onDowngrade: () => void;
}

/** Learns from the first connection whether a server speaks HTTP/2. Until then, requests wait. */
export class Negotiation {
  readonly #options: NegotiationOptions;
  #isHttp2: boolean | undefined;
  /** The connection that asked; the first lane takes it over. */
  #socket: TLSSocket | undefined;
  #waiting: { readonly exchange: Exchange; readonly carry: () => void }[] = [];
  #stopped = false;
  /** Who waits for the answer besides requests. */
  #onAnswer: (() => void)[] = [];

  constructor(options: NegotiationOptions) {
    this.#options = options;
  }

  get isKnown(): boolean {
    return this.#isHttp2 !== undefined;
  }
  get isHttp2(): boolean {
    return this.#isHttp2 === true;
  }

  /** Carries the exchange once it is known how. */
  ask(exchange: Exchange, carry: () => void): void {
    this.#stopped = false;
    this.#waiting.push({ exchange, carry });
    if (this.#waiting.length === 1) tlsConnect(this.#options.baseUrl, this.#options.tls, this.#answered);
  }

  readonly #answered = (error: unknown, socket?: TLSSocket): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (socket === undefined) for (const { exchange } of waiting) exchange.fail(error);
    else {
      this.#isHttp2 = socket.alpnProtocol === 'h2';
      if (this.#isHttp2 && !this.#stopped) this.#socket = socket.unref();
      else socket.destroy();
      for (const { exchange, carry } of waiting) if (!exchange.settled) carry();
    }
    for (const onAnswer of this.#onAnswer.splice(0)) onAnswer();
  };

  /** Ends when no request waits to know how it is carried. */
  async settled(): Promise<void> {
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => this.#onAnswer.push(resolve));
  }

  /** A lane of HTTP/2. */
  lane(connections: number): Http2Lane {
    const { baseUrl, tls, onDowngrade } = this.#options;
    const lane = new Http2Lane({
      baseUrl,
      connections,
      connect: (done) =>
        tlsConnect(baseUrl, tls, (error, socket) => {
          if (socket === undefined || socket.alpnProtocol === 'h2') return done(error, socket);
          socket.destroy();
          this.#isHttp2 = false;
          onDowngrade();
          done(new TransportFailure('connection', 'the server no longer offers HTTP/2'));
        }),
    });
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket !== undefined && !socket.destroyed) lane.adopt(socket);
    return lane;
  }

  /** Fails what waits, and lets go of the connection that nobody took over. */
  stop(): void {
    this.#stopped = true;
    this.#socket?.destroy();
    this.#socket = undefined;
    for (const { exchange } of this.#waiting)
      exchange.fail(new TransportFailure('connection', 'the client is destroyed'));
  }
}
