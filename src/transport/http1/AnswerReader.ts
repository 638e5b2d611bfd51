import { isHeaderName, isHeaderValue } from '../headerText.js';
import { TransportFailure } from '../Transport.js';

/** Of the head of an answer, and of a line or trailer of a chunked one. */
const LONGEST_TEXT = 16 * 1024;
const PROTOCOL = 'HTTP/1.';
const LINE_END = '\r\n';
const END_OF_HEAD = '\r\n\r\n';
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
/** Thirteen digits: the largest that a number holds exactly. */
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,13})(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const CONTENT_LENGTH = /^\d{1,15}$/;
/** How long before the server would close an idle connection it is not used any more: a request takes time to arrive. */
const CLOSES_BEFORE_MS = 2000;
const USUAL_KEEP_ALIVE_MS = 4000;
const LONGEST_KEEP_ALIVE_MS = 600_000;

/** Who is told of an answer's parts. */
export interface AnswerSink {
  responseStart(status: number, headers: Readonly<Record<string, string>>): void;
  responseData(chunk: Buffer): void;
}

/** What comes next: a head, a body or piece of it, or what stands between the chunks of one. */
type Next = 'head' | 'body' | 'chunk' | 'chunk-end' | 'chunk-size' | 'trailer' | 'nothing';

/**
 * Reads the answers of HTTP/1.1 to requests that are sent one at a time. It is strict: an answer whose length two readers could
 * understand differently is refused (RFC 9112, section 6.3).
 */
export class AnswerReader {
  /** Whether the connection can carry another request after this answer. */
  keepsOpen = true;
  /** How long it can, while it is idle. */
  keepAliveMs = USUAL_KEEP_ALIVE_MS;
  #next: Next = 'head';
  /** Where the next byte to read is, of those that have arrived. */
  #at = 0;
  /** What has come so far of a head or line. */
  #text = '';
  /** Bytes of the body, or of a chunk, that are still to come. */
  #left = 0;
  /** Of all lines of the trailer. */
  #trailerLength = 0;

  /** Prepares for the answer to another request. */
  restart(): void {
    this.#next = 'head';
    this.#text = '';
    this.#trailerLength = 0;
  }

  /**
   * Reads what has arrived. The bytes belong to the caller: what is passed on is a copy. Returns where the answer ends, or undefined
   * when more of it is to come.
   *
   * @throws TransportFailure when this is no answer of HTTP/1.1
   */
  read(bytes: Buffer, to: AnswerSink): number | undefined {
    this.#at = 0;
    while (this.#next !== 'nothing') {
      if (this.#at === bytes.length) return undefined;
      switch (this.#next) {
        case 'head':
          this.#readHead(bytes, to);
          break;
        case 'body':
        case 'chunk':
          this.#readData(bytes, to);
          break;
        default:
          this.#readLine(bytes);
      }
    }
    return this.#at;
  }

  /** The server has closed the connection. Returns whether that completes the answer. */
  end(): boolean {
    return this.#next === 'body' && this.#left === Infinity;
  }

  #readHead(bytes: Buffer, to: AnswerSink): void {
    const text = this.#textUpTo(END_OF_HEAD, bytes);
    // Something else may never send the end of a head.
    if (text === undefined && !this.#text.startsWith(PROTOCOL.slice(0, this.#text.length))) malformed('its first line');
    if (text === undefined) return;
    const head = headOf(text);
    // What the server says before its answer is of no interest.
    if (head.status < 200) return;
    this.keepsOpen = head.keepsOpen;
    this.keepAliveMs = head.keepAliveMs;
    this.#measure(head);
    to.responseStart(head.status, head.headers);
  }

  /** Finds out where the body ends. */
  #measure({ status, headers }: Head): void {
    const length = headers['content-length'];
    const encoding = headers['transfer-encoding'];
    if (length !== undefined && !CONTENT_LENGTH.test(length)) malformed('its content-length');
    if (status === 204 || status === 304) {
      this.#next = 'nothing';
    } else if (encoding !== undefined) {
      if (encoding.toLowerCase() !== 'chunked') malformed('its transfer-encoding');
      if (length !== undefined) malformed('it has two lengths');
      this.#next = 'chunk-size';
    } else if (length !== undefined) {
      this.#left = Number(length);
      this.#next = this.#left === 0 ? 'nothing' : 'body';
    } else {
      this.#left = Infinity;
      this.#next = 'body';
      this.keepsOpen = false;
    }
  }

  #readData(bytes: Buffer, to: AnswerSink): void {
    const chunk = bytes.subarray(this.#at, this.#at + this.#left);
    this.#at += chunk.length;
    this.#left -= chunk.length;
    if (this.#left === 0) this.#next = this.#next === 'body' ? 'nothing' : 'chunk-end';
    to.responseData(Buffer.from(chunk));
  }

  /** Reads a line of what surrounds the chunks. */
  #readLine(bytes: Buffer): void {
    const line = this.#textUpTo(LINE_END, bytes);
    if (line === undefined) return;
    switch (this.#next) {
      case 'chunk-size': {
        const [, size] = CHUNK_SIZE.exec(line) ?? malformed('the size of a chunk');
        this.#left = parseInt(size!, 16);
        this.#next = this.#left === 0 ? 'trailer' : 'chunk';
        break;
      }
      case 'chunk-end':
        if (line !== '') malformed('the end of a chunk');
        this.#next = 'chunk-size';
        break;
      default:
        // A trailer says nothing that is of interest here; an empty line ends it.
        this.#trailerLength += line.length + LINE_END.length;
        if (this.#trailerLength > LONGEST_TEXT) throw tooLong();
        if (line === '') this.#next = 'nothing';
    }
  }

  /** The text up to the mark, and the mark is passed; undefined, and what has come is kept, where it has not come yet. */
  #textUpTo(mark: string, bytes: Buffer): string | undefined {
    const before = this.#text.length;
    // Usually all of it has come, and nothing else becomes text.
    const found = before === 0 ? bytes.indexOf(mark, this.#at, 'latin1') : -1;
    const text = this.#text + bytes.toString('latin1', this.#at, found < 0 ? this.#at + LONGEST_TEXT : found);
    const end = found < 0 ? text.indexOf(mark, Math.max(0, before - mark.length + 1)) : text.length;
    if ((end < 0 ? text.length : end) >= LONGEST_TEXT) throw tooLong();
    if (end < 0) {
      this.#text = text;
      this.#at = bytes.length;
      return undefined;
    }
    this.#text = '';
    this.#at += end + mark.length - before;
    return text.slice(0, end);
  }
}

/** What a head says. */
interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly keepsOpen: boolean;
  readonly keepAliveMs: number;
}

/** A server writes many answers with the same head: all of one length within a second. */
let last: { readonly text: string; readonly head: Head } | undefined;

function headOf(text: string): Head {
  if (last?.text !== text) last = { text, head: readHead(text) };
  return last.head;
}

function readHead(text: string): Head {
  const end = text.indexOf(LINE_END);
  const [, minor, code] = STATUS_LINE.exec(end < 0 ? text : text.slice(0, end)) ?? malformed('its first line');
  const status = Number(code);
  if (status === 101) malformed('it changes the protocol');
  const headers = end < 0 ? {} : headersOf(text, end + LINE_END.length);
  const connection = headers['connection'] ?? '';
  const staysOpen = minor === '1' ? !/\bclose\b/i.test(connection) : /^keep-alive$/i.test(connection);
  const keepAliveMs = keepAliveOf(headers['keep-alive'] ?? '');
  return { status, headers: Object.freeze(headers), keepsOpen: staysOpen && keepAliveMs > 0, keepAliveMs };
}

function keepAliveOf(hint: string): number {
  const seconds = /\btimeout=(\d+)/i.exec(hint)?.[1];
  if (seconds === undefined) return USUAL_KEEP_ALIVE_MS;
  return Math.min(Number(seconds) * 1000 - CLOSES_BEFORE_MS, LONGEST_KEEP_ALIVE_MS);
}

function malformed(what: string): never {
  throw new TransportFailure('connection', `the server's answer is not valid HTTP: ${what}`);
}

const tooLong = (): TransportFailure =>
  new TransportFailure('answer', `the answer's headers are longer than ${LONGEST_TEXT / 1024} KiB`);

/** The headers in lines from `at` on. Names in lower case; several values of one name are joined by commas. */
function headersOf(head: string, at: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let start = at; start < head.length;) {
    const found = head.indexOf(LINE_END, start);
    const end = found < 0 ? head.length : found;
    const colon = head.indexOf(':', start);
    const written = head.slice(start, colon);
    const value = withoutSpaces(head, colon + 1, end);
    if (colon < 0 || colon > end || !isHeaderName(written) || !isHeaderValue(value)) malformed('a header');
    const name = written.toLowerCase();
    headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value;
    start = end + LINE_END.length;
  }
  return headers;
}

/** The part without spaces and tabs around it. `trim` would remove more than those. */
function withoutSpaces(text: string, from: number, to: number): string {
  const isSpace = (at: number): boolean => text[at] === ' ' || text[at] === '\t';
  let [start, end] = [from, to];
  while (start < end && isSpace(start)) start++;
  while (start < end && isSpace(end - 1)) end--;
  return text.slice(start, end);
}
