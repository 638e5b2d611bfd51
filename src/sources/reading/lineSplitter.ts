import { isUtf8 } from 'node:buffer';

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** Without its end. */
  readonly text?: string;
  /** Why there is no text. */
  readonly problem?: 'not UTF-8' | 'too long';
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * Cuts bytes into lines, lazily: a line is decoded when it is asked for. Blank lines are counted, not given. Of a line that is longer than
 * `maxBytes` nothing is kept but that it was there.
 */
export class LineSplitter {
  /** The pieces of a line whose end has not come yet. */
  #open: Buffer[] = [];
  #openBytes = 0;
  #number = 0;

  constructor(readonly maxBytes: number) {}

  *push(chunk: Buffer): Generator<Line> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end < 0) break;
      const bytes = chunk.subarray(start, end);
      start = end + 1;
      yield* this.#line(bytes);
    }
    this.#openBytes += chunk.length - start;
    if (this.#openBytes > this.maxBytes) this.#open = [];
    // A copy, so that a short rest does not keep the whole chunk alive.
    else if (start < chunk.length) this.#open.push(Buffer.from(chunk.subarray(start)));
  }

  *end(): Generator<Line> {
    if (this.#openBytes > 0) yield* this.#line(Buffer.alloc(0));
  }

  /** The line that ends with these bytes. */
  *#line(last: Buffer): Generator<Line> {
    this.#number++;
    const [open, length] = [this.#open, this.#openBytes + last.length];
    this.#open = [];
    this.#openBytes = 0;
    if (length > this.maxBytes) {
      yield { number: this.#number, problem: 'too long' };
      return;
    }
    const bytes = open.length === 0 ? last : Buffer.concat([...open, last]);
    let start = 0;
    let end = bytes.length;
    if (this.#number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) start = 3;
    if (end > start && bytes[end - 1] === RETURN) end--;
    const line = bytes.subarray(start, end);
    if (!isUtf8(line)) {
      yield { number: this.#number, problem: 'not UTF-8' };
      return;
    }
    const text = line.toString('utf8');
    if (text.trim() !== '') yield { number: this.#number, text };
  }
}
