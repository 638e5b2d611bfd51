import type { Deadlines, Due } from './Deadlines.js';
import { failureOf } from './failureOf.js';
import { TransportFailure, type TransportRequest, type TransportResponse } from './Transport.js';

/** A request body goes out in pieces of this size, so that it can be seen to move. */
const PIECE_BYTES = 256 * 1024;
/** What a connection is trusted to carry at the least: an answer that is slower is as good as none. */
const SLOWEST_BYTES_PER_MS = 64;
/** The machine says "sent" when it has taken the bytes: as many as this may still wait in its buffers, or on the way. */
const MOST_BUFFERED_BYTES = 4 * 1024 * 1024;
const SLOWEST_UPLOAD_BYTES_PER_MS = 256;
/** A refusal is read up to here; its status is what counts. */
const LONGEST_REFUSAL_BYTES = 1024 * 1024;

export interface ExchangeOptions {
  readonly deadlines: Deadlines;
  /** The most bytes that a successful answer may have. */
  readonly mostBytes: number;
  readonly onResponse: (response: TransportResponse) => void;
  readonly onFailure: (failure: TransportFailure) => void;
}

/**
 * One request and its answer, whichever protocol carries them. It comes to its end once: with the response, or with a
 * failure.
 *
 * It is late when its body does not move for `timeoutMs`, or when the whole answer is not there `timeoutMs` after the body
 * was sent. A large answer has the time it needs at 64 kB a second. An answer that trickles is late all the same.
 */
export class Exchange implements Due {
  dueMs = Infinity;
  /** How often it has begun again. */
  restarts = 0;
  readonly body: Uint8Array | undefined;
  readonly #options: ExchangeOptions;
  #abort: (() => void) | undefined;
  #answerDueMs = Infinity;
  #sent = false;
  #status = 0;
  #headers: Record<string, string> = {};
  #chunks: Buffer[] = [];
  #received = 0;
  #settled = false;
  #isLate = false;

  constructor(
    readonly request: TransportRequest,
    options: ExchangeOptions,
  ) {
    this.#options = options;
    const { body } = request;
    this.body = typeof body === 'string' ? Buffer.from(body) : body;
  }

  /** Whether nothing can come of it any more. */
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

  /** It is on a connection; `abort` takes it off again. */
  begin(abort: () => void): void {
    this.#abort = abort;
    if (this.#settled) return abort();
    this.#move();
    if (this.body === undefined || this.body.length <= PIECE_BYTES) this.#allSent();
    this.#options.deadlines.watch(this);
  }

  /** The connection is gone before anything was done with the request; it may begin again. */
  restart(): void {
    this.restarts++;
    this.#options.deadlines.forget(this);
    this.#abort = undefined;
    this.#sent = false;
    this.dueMs = Infinity;
  }

  /** The body in pieces; a piece that is asked for says that the one before has left. */
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
    return this.body !== undefined && this.body.length > PIECE_BYTES;
  }

  #move(): void {
    if (!this.#sent) this.dueMs = performance.now() + this.request.timeoutMs;
  }

  #allSent(): void {
    const buffered = this.isLarge ? Math.min(this.body!.length, MOST_BUFFERED_BYTES) : 0;
    this.#move();
    this.#sent = true;
    this.dueMs += buffered / SLOWEST_UPLOAD_BYTES_PER_MS;
    this.#answerDueMs = this.dueMs;
  }

  responseStart(
    status: number,
    headers: Readonly<Record<string, string | readonly string[] | number | undefined>>,
  ): void {
    if (this.#settled) return;
    this.#status = status;
    this.#headers = {};
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined && name[0] !== ':')
        this.#headers[name] = Array.isArray(value) ? value.join(', ') : String(value);
    }
    // An answer may come before the whole request is out; from now on it is the answer that is waited for.
    if (!this.#sent) this.#allSent();
    if (this.#isSuccess && Number(this.#headers['content-length']) > this.#options.mostBytes) this.#tooLarge();
  }

  responseData(chunk: Buffer): void {
    if (this.#settled) return;
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    this.dueMs = this.#answerDueMs + this.#received / SLOWEST_BYTES_PER_MS;
    if (this.#isSuccess ? this.#received > this.#options.mostBytes : this.#received > LONGEST_REFUSAL_BYTES) {
      if (this.#isSuccess) return this.#tooLarge();
      this.responseEnd();
      this.#abort?.();
    }
  }

  responseEnd(): void {
    if (this.#settled) return;
    this.#end();
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#options.onResponse({ status: this.#status, headers: this.#headers, body });
  }

  /** It came to nothing. @param error what the connection said */
  fail(error: unknown): void {
    if (this.#settled) return;
    this.#end();
    this.#chunks = [];
    this.#options.onFailure(failureOf(error));
  }

  /** Nobody waits for it any more. */
  cancel(): void {
    if (this.#settled) return;
    this.#end();
    this.#chunks = [];
    this.#abort?.();
  }

  late(): void {
    const seconds = this.request.timeoutMs / 1000;
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

  get #isSuccess(): boolean {
    return this.#status >= 200 && this.#status < 300;
  }

  #tooLarge(): void {
    const megabytes = Math.round(this.#options.mostBytes / 2 ** 20);
    const abort = this.#abort;
    this.fail(new TransportFailure('answer', `the answer is larger than ${megabytes} MiB`));
    abort?.();
  }

  #end(): void {
    this.#settled = true;
    this.#options.deadlines.forget(this);
  }
}
