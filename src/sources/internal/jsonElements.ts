import { SourceError } from '../SourceError.js';

export interface JsonElement {
  /** The line it starts on, from 1. */
  readonly line: number;
  /** Undefined for one that is longer than it may be. */
  readonly bytes: Buffer | undefined;
}

const [QUOTE, BACKSLASH, COMMA, NEWLINE] = [0x22, 0x5c, 0x2c, 0x0a];
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);
const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Cuts the text of one JSON array into its elements without parsing them, so that a file of any size can be read.
 * What the elements are worth, `JSON.parse` decides later; here only strings and brackets count.
 */
export class JsonElementSplitter {
  #state: 'before' | 'inside' | 'after' = 'before';
  #depth = 0;
  #inString = false;
  #escaped = false;
  #line = 1;
  #startLine = 1;
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #started = false;
  #first = true;
  #empty = true;

  constructor(
    readonly file: string,
    readonly maxBytes: number,
  ) {}

  *push(chunk: Buffer): Generator<JsonElement> {
    if (chunk.length > 0) this.#empty = false;
    let start = 0;
    for (let place = 0; place < chunk.length; place++) {
      const byte = chunk[place]!;
      if (byte === NEWLINE) this.#line++;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) this.#inString = false;
        continue;
      }
      if (this.#state !== 'inside') {
        this.#outside(byte);
        start = place + 1;
        continue;
      }
      if (!this.#started) {
        if (SPACE.has(byte)) {
          start = place + 1;
          continue;
        }
        if (!(CLOSING.has(byte) && this.#first)) {
          this.#started = true;
          this.#startLine = this.#line;
        }
      }
      if (byte === QUOTE) this.#inString = true;
      else if (OPENING.has(byte)) this.#depth++;
      else if (CLOSING.has(byte) && this.#depth > 0) this.#depth--;
      else if (this.#depth === 0 && (byte === COMMA || CLOSING.has(byte))) {
        if (this.#started) yield this.#element(chunk.subarray(start, place));
        start = place + 1;
        this.#started = false;
        this.#first = false;
        if (byte !== COMMA) this.#state = 'after';
      }
    }
    if (this.#state === 'inside' && this.#started) this.#keep(chunk.subarray(start));
  }

  /** Keeps a part of an element, unless the element is too long: then nothing of it. */
  #keep(bytes: Buffer): void {
    this.#pieceBytes += bytes.length;
    if (this.#pieceBytes > this.maxBytes) this.#pieces = [];
    else this.#pieces.push(Buffer.from(bytes));
  }

  /** Throws if the array has not ended. */
  end(): void {
    if (this.#empty) throw new SourceError(this.file, 'the file is empty');
    if (this.#state !== 'after') this.#fail('the JSON array does not end');
  }

  #outside(byte: number): void {
    // A byte-order mark may come first.
    if (SPACE.has(byte) || (this.#state === 'before' && [0xef, 0xbb, 0xbf].includes(byte))) return;
    if (this.#state === 'after') this.#fail('more text after the JSON array');
    if (byte !== 0x5b)
      this.#fail('expected a JSON array of rows; a file with one row on each line should end in .jsonl');
    this.#state = 'inside';
  }

  #fail(reason: string): never {
    throw new SourceError(`${this.file}:${this.#line}`, reason);
  }

  #element(last: Buffer): JsonElement {
    const isTooLong = this.#pieceBytes + last.length > this.maxBytes;
    const bytes = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
    this.#pieces = [];
    this.#pieceBytes = 0;
    return { line: this.#startLine, bytes: isTooLong ? undefined : bytes };
  }
}
