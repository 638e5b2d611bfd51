import { request as ask, type IncomingHttpHeaders } from 'node:http';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders as StreamHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { identity } from '../../loopback/support/fakeService.js';

/** How a front of HTTP/2 hurts a request. In each case but the first two the service has acted. */
export const HTTP2_WOUNDS = [
  'refused', // REFUSED_STREAM before anything is passed on
  'cancelled', // CANCEL before anything is passed on
  'cut answer', // RST_STREAM(NO_ERROR) in the middle of an answer of known length
  'half answer', // the connection is closed in the middle of the answer
  'answer lost', // the connection is closed before the answer
  'goaway', // the server asks for another connection; what is in flight is answered on this one
  'stall', // everything is passed on, and no byte of the answer comes back
  'delay',
  'drip', // the answer comes a few bytes at a time
] as const;
export type Http2Wound = (typeof HTTP2_WOUNDS)[number];

export interface FaultyHttp2Options {
  /** Gives the next request's wound, or none. */
  readonly next: () => Http2Wound | undefined;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const DELAY_MS = 40;
const DRIP_MS = 2;
const DRIPS = 12;
/** Headers that HTTP/2 does not have, and the length, which is written anew. */
const OF_HTTP1 = /^(?:connection|keep-alive|transfer-encoding|content-length|host|:.*)$/;

/** A server of HTTP/2 over TLS before a service of HTTP/1.1. Closing a connection hurts everything that is in flight on it. */
export class FaultyHttp2 {
  /** Requests that came in. */
  requests = 0;
  readonly #server: Http2SecureServer;
  readonly #sessions = new Set<ServerHttp2Session>();
  #target: URL;

  private constructor(
    target: string,
    readonly options: FaultyHttp2Options,
  ) {
    this.#target = new URL(target);
    this.#server = createSecureServer(identity());
    this.#server.on('stream', (stream, headers) => void this.#carry(stream, headers));
    this.#server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('error', () => undefined);
      session.on('close', () => this.#sessions.delete(session));
    });
  }

  static async start(target: string, options: FaultyHttp2Options): Promise<FaultyHttp2> {
    const front = new FaultyHttp2(target, options);
    await new Promise<void>((resolve) => front.#server.listen(0, 'localhost', resolve));
    return front;
  }

  get url(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Another service from here on, as after a restart. */
  set target(url: string) {
    this.#target = new URL(url);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const session of this.#sessions) session.destroy();
    await closed;
  }

  async #carry(stream: ServerHttp2Stream, headers: StreamHeaders): Promise<void> {
    stream.on('error', () => undefined);
    this.requests++;
    const wound = this.options.next();
    if (wound === 'refused') return stream.close(constants.NGHTTP2_REFUSED_STREAM);
    if (wound === 'cancelled') return stream.close(constants.NGHTTP2_CANCEL);
    if (wound === 'goaway') stream.session!.goaway(constants.NGHTTP2_NO_ERROR);
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      if (wound === 'delay') await pause(DELAY_MS);
      const answer = await this.#pass(stream, headers, Buffer.concat(chunks));
      if (!stream.closed) await reply(stream, answer, wound);
    } catch {
      // The service hung up, or the client has.
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    }
  }

  /** The service's answer. What the client gives up is given up there too. */
  #pass(stream: ServerHttp2Stream, headers: StreamHeaders, body: Buffer): Promise<Answer> {
    const { hostname, port } = this.#target;
    return new Promise((resolve, reject) => {
      const { ':method': method = 'GET', ':path': path = '/' } = headers;
      const passed = ask({ hostname, port, method, path, agent: false, headers: withoutOwn(headers) }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
        );
      });
      passed.on('error', reject);
      passed.setHeader('content-length', body.length);
      passed.end(body);
      stream.on('close', () => passed.destroy());
    });
  }
}

async function reply(stream: ServerHttp2Stream, answer: Answer, wound: Http2Wound | undefined): Promise<void> {
  const { status, headers, body } = answer;
  if (wound === 'answer lost') return stream.session!.destroy();
  if (wound === 'stall') return;
  stream.respond({ ...withoutOwn(headers), ':status': status, 'content-length': body.length });
  const half = body.subarray(0, body.length >> 1);
  if (wound === 'half answer') return void stream.write(half, () => setImmediate(() => stream.session?.destroy()));
  if (wound === 'cut answer') return void stream.write(half, () => resetWithoutError(stream));
  const size = Math.ceil(body.length / (wound === 'drip' ? DRIPS : 1));
  for (let start = 0; start < body.length && !stream.closed; start += size) {
    stream.write(body.subarray(start, start + size));
    if (wound === 'drip') await pause(DRIP_MS);
  }
  stream.end();
}

/** Sends RST_STREAM(NO_ERROR). Node would end the stream first: then the length that is not reached, and not the reset, is what fails. */
export function resetWithoutError(stream: ServerHttp2Stream): void {
  stream._final = (done) => done();
  stream.close(constants.NGHTTP2_NO_ERROR);
}

const withoutOwn = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_HTTP1.test(name)));

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
