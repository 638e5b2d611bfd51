const utf8 = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** The text of UTF-8 bytes; what is not UTF-8 becomes U+FFFD, and a byte order mark is kept. */
export const decodeUtf8 = (bytes: Uint8Array): string => utf8.decode(bytes);

/** Bytes that grow as they are written. */
export class ByteSink {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  bytes(values: Uint8Array): void {
    this.#reserve(values.length);
    this.#bytes.set(values, this.#length);
    this.#length += values.length;
  }

  text(value: string): void {
    // A UTF-16 unit takes at most three bytes of UTF-8.
    this.#reserve(value.length * 3);
    this.#length += this.#bytes.write(value, this.#length, 'utf8');
  }

  /** A copy of what was written, without the first `skip` bytes. */
  take(skip = 0): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(skip, this.#length));
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
