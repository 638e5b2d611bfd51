import type { Observer, Unsubscribable } from 'rxjs';
import type { Deadlines, Due } from './Deadlines.js';
import { failureOf } from './failureOf.js';
import { TransportFailure, type Lane, type TransportRequest, type TransportResponse } from './Transport.js';

/** Large request bodies are sent in pieces of this size: each piece that leaves shows progress. */
const PIECE_BYTES = 256 * 1024;
/** The slowest download that is still waited for. */
const SLOWEST_BYTES_PER_MS = 64;
/** The system reports bytes as sent once it has buffered them; up to this many may not have left yet. */
const MOST_BUFFERED_BYTES = 4 * 1024 * 1024;
const SLOWEST_UPLOAD_BYTES_PER_MS = 256;
/** The rest of a longer refusal is not read: its status matters most. */
const LONGEST_REFUSAL_BYTES = 1024 * 1024;

/** What an exchange asks for after its end. */
const NOTHING: TransportRequest = { method: 'GET', path: '/', lane: 'rest', headers: {}, timeoutMs: 0 };

/** What all exchanges of a transport share. */
export interface ExchangeOptions {
  readonly deadlines: Deadlines;
  /** The most bytes that a successful answer may have. */
  readonly mostBytes: Readonly<Record<Lane, number>>;
  /** Called with every answer before its reader gets it. */
  readonly onResponse: (request: TransportRequest, response: TransportResponse) => void;
}

/**
 * One request and its answer, over HTTP/1.1 or HTTP/2. It ends once: with the response, or with a failure.
 *
 * It times out when none of its body could be sent for `timeoutMs`, or when the answer is not complete `timeoutMs` after the
 * body was sent. Large answers get more time, at 64 kB a second; an answer that trickles in more slowly times out.
 */
export class Exchange implements Due, Unsubscribable {
  dueMs = Infinity;
  /** How often it was started again. */
  restarts = 0;
  readonly #options: ExchangeOptions;
  #content: string | Uint8Array | undefined;
  #contentLength: number | undefined;
  #abort: (() => void) | undefined;
  #answerDueMs = Infinity;
  #sent = false;
  #requestLeft = false;
  #status = 0;
  #headers: Record<string, string> = {};
  #chunks: Buffer[] = [];
  #received = 0;
  #settled = false;
  #isLate = false;

  #request: TransportRequest;
  #reader: Observer<TransportResponse> | undefined;

  constructor(request: TransportRequest, reader: Observer<TransportResponse>, options: ExchangeOptions) {
    this.#request = request;
    this.#reader = reader;
    this.#options = options;
  }

  /** What is asked for; nothing once it has ended. */
  get request(): TransportRequest {
    return this.#request;
  }

  /**
   * What to send. Made when a connection takes the request: many may wait for one.
   *
   * @throws TransportFailure when it cannot be made: a text has a greatest length
   */
  get content(): string | Uint8Array | undefined {
    try {
      return (this.#content ??= this.#request.body);
    } catch (error) {
      throw new TransportFailure('request', `the body cannot be written: ${(error as Error).message}`, error);
    }
  }

  /** How many bytes that is. */
  get contentLength(): number {
    return (this.#contentLength ??= this.content === undefined ? 0 : Buffer.byteLength(this.content));
  }

  /** The bytes to send. */
  get body(): Uint8Array | undefined {
    const { content } = this;
    return typeof content === 'string' ? (this.#content = Buffer.from(content)) : content;
  }

  /** Whether it has ended: with a response, with a failure or by being cancelled. */
  get settled(): boolean {
    return this.#settled;
  }
  /** Whether the answer has begun. */
  get answered(): boolean {
    return this.#status !== 0;
  }

  /** Whether it was given up because it took too long. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** The request has a connection; `abort` stops it there. */
  begin(abort: () => void): void {
    this.#abort = abort;
    if (this.#settled) return abort();
    this.#move();
    if (!this.isLarge) this.#allSent();
    this.#options.deadlines.watch(this);
  }

  /** The server refused the request without reading it: it may begin again on another connection. */
  restart(): void {
    this.restarts++;
    this.#options.deadlines.forget(this);
    this.#abort = undefined;
    this.#sent = false;
    this.dueMs = Infinity;
  }

  /** The body in pieces. Asking for a piece means that the previous one has left. */
  *pieces(): Generator<Uint8Array, void> {
    const { body } = this;
    if (body === undefined) return;
    for (let at = 0; at < body.length; at += PIECE_BYTES) {
      this.#move();
      yield body.subarray(at, at + PIECE_BYTES);
    }
    this.#allSent();
  }

  /** Whether the body is sent piece by piece. */
  get isLarge(): boolean {
    return this.contentLength > PIECE_BYTES;
  }

  #move(): void {
    if (!this.#sent) this.dueMs = performance.now() + this.#request.timeoutMs;
  }

  #allSent(): void {
    const buffered = this.isLarge ? Math.min(this.contentLength, MOST_BUFFERED_BYTES) : 0;
    this.#move();
    this.#sent = true;
    this.dueMs += buffered / SLOWEST_UPLOAD_BYTES_PER_MS;
    this.#answerDueMs = this.dueMs;
  }

  responseStart(status: number, headers: Headers): void {
    if (this.#settled) return;
    this.#status = status;
    this.#headers = plain(headers);
    // An answer may begin before the whole request was sent; from here on only the answer counts.
    if (!this.#sent) this.#allSent();
    else this.#requestLeft = this.isLarge;
    if (this.#isSuccess && Number(this.#headers['content-length']) > this.#mostBytes) this.#tooLarge();
  }

  responseData(chunk: Buffer): void {
    if (this.#settled) return;
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    this.dueMs = this.#answerDueMs + this.#received / SLOWEST_BYTES_PER_MS;
    if (this.#isSuccess ? this.#received > this.#mostBytes : this.#received > LONGEST_REFUSAL_BYTES) {
      if (this.#isSuccess) return this.#tooLarge();
      const abort = this.#abort;
      this.responseEnd();
      abort?.();
    }
  }

  responseEnd(): void {
    if (this.#settled) return;
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    const response: TransportResponse = this.#requestLeft
      ? { status: this.#status, headers: this.#headers, body, requestLeft: true }
      : { status: this.#status, headers: this.#headers, body };
    const request = this.#request;
    const reader = this.#end();
    this.#options.onResponse(request, response);
    reader?.next(response);
    reader?.complete();
  }

  /** The request failed. @param error the connection's error */
  fail(error: unknown): void {
    if (this.#settled) return;
    this.#end()?.error(failureOf(error));
  }

  /** The caller no longer wants the answer. */
  unsubscribe(): void {
    if (this.#settled) return;
    const abort = this.#abort;
    this.#end();
    abort?.();
  }

  late(): void {
    const seconds = this.#request.timeoutMs / 1000;
    const what = !this.#sent
      ? `the request could not be sent on for ${seconds} s`
      : this.answered
        ? `the answer was not complete after ${seconds} s`
        : `no answer within ${seconds} s`;
    const abort = this.#abort;
    this.#isLate = true;
    this.fail(new TransportFailure('timeout', what));
    abort?.();
  }

  get #mostBytes(): number {
    return this.#options.mostBytes[this.#request.lane];
  }

  get #isSuccess(): boolean {
    return this.#status >= 200 && this.#status < 300;
  }

  #tooLarge(): void {
    const megabytes = Math.round(this.#mostBytes / 2 ** 20);
    const abort = this.#abort;
    this.fail(new TransportFailure('answer', `the answer is larger than ${megabytes} MiB`));
    abort?.();
  }

  /**
   * Returns who is to be told. It lets go of all it held: connections, the queue of a lane or a subscription may keep
   * an exchange for a while after its end, and thousands of them.
   */
  #end(): Observer<TransportResponse> | undefined {
    const reader = this.#reader;
    this.#settled = true;
    this.#options.deadlines.forget(this);
    this.#request = NOTHING;
    this.#reader = this.#content = this.#contentLength = this.#abort = undefined;
    this.#chunks = [];
    return reader;
  }
}

type Headers = Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** Headers as a response has them. Usually that is what they are already. */
function plain(headers: Headers): Record<string, string> {
  for (const name in headers) if (typeof headers[name] !== 'string' || name[0] === ':') return joined(headers);
  return headers as Record<string, string>;
}

function joined(headers: Headers): Record<string, string> {
  const made: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && name[0] !== ':') made[name] = Array.isArray(value) ? value.join(', ') : String(value);
  }
  return made;
}
