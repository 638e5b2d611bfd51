import { isUtf8 } from 'node:buffer';

/** Decodes bytes that come in chunks, and tells which chunks are not UTF-8. A character may begin in one chunk and end in the next. */
export class Utf8Chunks {
  /** The first bytes of a character whose end has not come yet. */
  #open = Buffer.alloc(0);
  /** Whether all of what was decoded last is UTF-8. If it is not, U+FFFD stands for what is wrong. */
  isUtf8 = true;

  decode(chunk: Buffer): string {
    const bytes = this.#open.length === 0 ? chunk : Buffer.concat([this.#open, chunk]);
    const end = bytes.length - openBytes(bytes);
    this.#open = Buffer.from(bytes.subarray(end));
    return this.#text(bytes.subarray(0, end));
  }

  /** What is left: a character that was cut off. */
  end(): string {
    return this.#text(this.#open);
  }

  #text(bytes: Buffer): string {
    this.isUtf8 = isUtf8(bytes);
    return bytes.toString('utf8');
  }
}

/** How many bytes at the end belong to an incomplete character. */
function openBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}
