import type { Observable, Subscriber } from 'rxjs';
import { TransportFailure, type TransportRequest, type TransportResponse } from './Transport.js';

/** The connections of one lane. */
export interface LanePool {
  /** Sends on subscribe; unsubscribing aborts. */
  send(request: TransportRequest): Observable<TransportResponse>;
  /** Takes nothing new and waits for what is in flight. */
  close(): Promise<void>;
  /** Fails what is in flight. Does not wait for the server. */
  destroy(): Promise<void>;
}

/** The name of a header. */
export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** The value of a header: one line, one byte per character. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The connection writes these headers. */
export const RESERVED_HEADERS = new Set(['content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'expect']);

/** The failure of a request with a header that cannot be sent; undefined if all can. */
export function headerFailure(headers: TransportRequest['headers']): TransportFailure | undefined {
  for (const name in headers)
    if (!HEADER_NAME.test(name) || !HEADER_VALUE.test(headers[name]!))
      return new TransportFailure('request', `invalid ${JSON.stringify(name)} header`);
  return undefined;
}

/** A longer refusal is cut here: its status matters most. */
const LONGEST_REFUSAL_BYTES = 1024 * 1024;

/** Collects one answer, over HTTP/1.1 or HTTP/2, and gives it to the caller. Stops reading an answer that is too large. */
export class AnswerReader {
  /** 0 until the answer begins. */
  status = 0;
  /**
   * Whether the connection must not be used again. Some servers close it a moment after an error; an empty 400 comes from a
   * proxy, and a new connection helps.
   */
  spoilsConnection = false;
  #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  #received = 0;
  #limit = LONGEST_REFUSAL_BYTES;

  constructor(
    readonly subscriber: Subscriber<TransportResponse>,
    /** The most bytes that a successful answer may have. */
    readonly mostBytes: number,
  ) {}

  /** Ends the exchange on its connection. Each protocol sets its own. */
  abort(): void {}

  /** Whether the whole answer has arrived, by the length that the server announced; undefined if it announced none. */
  get isWhole(): boolean | undefined {
    const announced = this.#headers['content-length'];
    return announced === undefined ? undefined : this.#received >= Number(announced);
  }

  start(status: number, headers: Readonly<Record<string, string | readonly string[] | number | undefined>>): void {
    this.status = status;
    for (const name in headers) {
      const value = headers[name];
      // Names with a colon are HTTP/2's own.
      if (value !== undefined && name[0] !== ':')
        this.#headers[name] = Array.isArray(value) ? value.join(', ') : String(value);
    }
    const announced = this.#headers['content-length'];
    this.spoilsConnection = status >= 500 || (status === 400 && announced === '0');
    if (status >= 200 && status < 300) {
      this.#limit = this.mostBytes;
      if (Number(announced) > this.#limit) this.#stop();
    }
  }

  data(chunk: Buffer): void {
    if (this.subscriber.closed) return;
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#received > this.#limit) this.#stop();
  }

  end(): void {
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.subscriber.next({ status: this.status, headers: this.#headers, body });
    this.subscriber.complete();
  }

  /** A success that is too large is a failure; a refusal is read as far as it came. */
  #stop(): void {
    const isRefusal = this.status < 200 || this.status >= 300;
    const megabytes = Math.round(this.mostBytes / 2 ** 20);
    if (isRefusal) this.end();
    else this.subscriber.error(new TransportFailure('answer', `the answer is larger than ${megabytes} MiB`));
    this.abort();
  }
}
