import { unwritten } from './bytes.js';

const MEBIBYTE = 2 ** 20;
const MOST_SPARE = 16;

/**
 * Memory for large messages, used again by the next ones: fresh memory costs a page fault for every 4 KiB, and the collector runs more
 * often the more of it there is. What is spare is not held: the collector may take it at any time.
 */
export class MessageMemory {
  #spare: WeakRef<ArrayBuffer>[] = [];

  /** Memory of this size, all of which the caller must write. */
  readonly take = (byteLength: number): Uint8Array<ArrayBuffer> => {
    if (byteLength < MEBIBYTE) return unwritten(byteLength);
    const fits = (size: number): boolean => size >= byteLength && size <= 2 * byteLength;
    for (const [index, spare] of this.#spare.entries()) {
      const buffer = spare.deref();
      if (buffer === undefined || !fits(buffer.byteLength)) continue;
      this.#spare.splice(index, 1);
      return new Uint8Array(buffer, 0, byteLength);
    }
    const { buffer } = unwritten(Math.ceil(byteLength / MEBIBYTE) * MEBIBYTE);
    return new Uint8Array(buffer, 0, byteLength);
  };

  /** Gives memory back that nobody reads any more. */
  give({ buffer }: Uint8Array<ArrayBuffer>): void {
    if (buffer.byteLength < MEBIBYTE) return;
    this.#spare = this.#spare.filter((spare) => spare.deref() !== undefined);
    if (this.#spare.length < MOST_SPARE) this.#spare.push(new WeakRef(buffer));
  }
}
