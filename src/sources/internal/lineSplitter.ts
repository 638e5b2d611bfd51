import { isUtf8 } from 'node:buffer';

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** Without its end; undefined where the bytes are no UTF-8. */
  readonly text: string | undefined;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** Cuts bytes into lines, lazily: a line is decoded when it is asked for. Blank lines are counted, not given. */
export class LineSplitter {
  /** The pieces of a line whose end has not come yet. */
  #open: Buffer[] = [];
  #number = 0;

  *push(chunk: Buffer): Generator<Line> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end < 0) break;
      let bytes = chunk.subarray(start, end);
      if (this.#open.length > 0) {
        bytes = Buffer.concat([...this.#open, bytes]);
        this.#open = [];
      }
      start = end + 1;
      yield* this.#line(bytes);
    }
    // A copy, so that a short rest does not keep the whole chunk alive.
    if (start < chunk.length) this.#open.push(Buffer.from(chunk.subarray(start)));
  }

  *end(): Generator<Line> {
    const bytes = Buffer.concat(this.#open);
    this.#open = [];
    if (bytes.length > 0) yield* this.#line(bytes);
  }

  *#line(bytes: Buffer): Generator<Line> {
    this.#number++;
    let start = 0;
    let end = bytes.length;
    if (this.#number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) start = 3;
    if (end > start && bytes[end - 1] === RETURN) end--;
    const line = bytes.subarray(start, end);
    if (!isUtf8(line)) {
      yield { number: this.#number, text: undefined };
      return;
    }
    const text = line.toString('utf8');
    if (text.trim() !== '') yield { number: this.#number, text };
  }
}
