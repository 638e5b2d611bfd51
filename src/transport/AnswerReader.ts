import type { Subscriber } from 'rxjs';
import { TransportFailure, type TransportResponse } from './Transport.js';

/** The rest of a longer refusal is not read: its status matters most. */
const LONGEST_REFUSAL_BYTES = 1024 * 1024;

type Headers = Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** Puts one answer together, over HTTP/1.1 or HTTP/2, and gives it to the caller. Nothing is read of an answer that is too large. */
export class AnswerReader {
  #status = 0;
  #headers: Record<string, string> = {};
  #chunks: Buffer[] = [];
  #received = 0;

  constructor(
    readonly subscriber: Subscriber<TransportResponse>,
    /** The most bytes that a successful answer may have. */
    readonly mostBytes: number,
    /** Ends the exchange on its connection. */
    readonly abort: () => void,
  ) {}

  /** Whether any byte of the answer has arrived. */
  get hasBegun(): boolean {
    return this.#status !== 0;
  }

  /** Whether the whole answer has arrived, by the length that the server announced; undefined where it announced none. */
  get isWhole(): boolean | undefined {
    const announced = this.#headers['content-length'];
    return announced === undefined ? undefined : this.#received >= Number(announced);
  }

  /**
   * Whether the connection is of no more use. Some servers close it a moment after an error; an empty 400 comes from a
   * proxy, and a new connection helps.
   */
  get spoilsConnection(): boolean {
    return this.#status >= 500 || (this.#status === 400 && this.#headers['content-length'] === '0');
  }

  start(status: number, headers: Headers): void {
    this.#status = status;
    this.#headers = joined(headers);
    if (this.#isSuccess && Number(this.#headers['content-length']) > this.mostBytes) this.#refuse();
  }

  data(chunk: Buffer): void {
    if (this.subscriber.closed) return;
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#isSuccess) {
      if (this.#received > this.mostBytes) this.#refuse();
    } else if (this.#received > LONGEST_REFUSAL_BYTES) {
      this.end();
      this.abort();
    }
  }

  end(): void {
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.subscriber.next({ status: this.#status, headers: this.#headers, body });
    this.subscriber.complete();
  }

  get #isSuccess(): boolean {
    return this.#status >= 200 && this.#status < 300;
  }

  #refuse(): void {
    const megabytes = Math.round(this.mostBytes / 2 ** 20);
    this.subscriber.error(new TransportFailure('answer', `the answer is larger than ${megabytes} MiB`));
    this.abort();
  }
}

/** Headers as a response has them: text, without HTTP/2's own. */
function joined(headers: Headers): Record<string, string> {
  const made: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && name[0] !== ':') made[name] = Array.isArray(value) ? value.join(', ') : String(value);
  }
  return made;
}
