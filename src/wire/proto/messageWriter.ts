import { bytesOf, writeInt64s, type View } from './tensor.js';
import type { TensorValues } from '../tensor.js';

const LENGTH_DELIMITED = 2;
const VARINT = 0;
const BIT64 = 1;
const utf8 = new TextEncoder();

/**
 * One protobuf message. `write` is called twice, with the same data: first to measure, then to write into memory of exactly
 * that size. What it leaves out or adds the second time is a mistake.
 *
 * @bufbuild/protobuf's writer moves a nested message each time its length becomes known, once for every level, and training data is
 * nested four deep: a pass of 1,024 × 2,048 tokens (34 MB) took 116 ms with it and takes 28 ms here (bench/encoding.mjs), which is the
 * difference between two and four times the Python SDK's pace.
 */
export function encodeMessage(write: (message: MessageWriter) => void): Uint8Array {
  const writer = new MessageWriter();
  write(writer);
  const message = writer.start();
  write(writer);
  writer.finish();
  return message;
}

/** What {@link encodeMessage} hands to its callback. */
export class MessageWriter {
  /** undefined while it measures. */
  #target: Uint8Array | undefined;
  #at = 0;
  /** Of the nested messages, in the order in which they begin. */
  readonly #sizes: number[] = [];
  #begun = 0;

  string(field: number, value: string): this {
    return value === '' ? this : this.presentString(field, value);
  }
  /** Text that says something by being there, also when empty. */
  presentString(field: number, value: string): this {
    return this.presentBytes(field, utf8.encode(value));
  }
  /** The bytes under a typed array. */
  bytes(field: number, value: View): this {
    return value.byteLength === 0 ? this : this.presentBytes(field, value);
  }
  /** Bytes that say something by being there, also when empty (a oneof arm, an optional). */
  presentBytes(field: number, value: View): this {
    const { byteLength } = value;
    this.#head(field, LENGTH_DELIMITED, byteLength);
    this.#target?.set(value instanceof Uint8Array ? value : bytesOf(value), this.#at);
    this.#at += byteLength;
    return this;
  }
  /** Integers as the bytes of int64 values. */
  int64s(field: number, values: TensorValues): this {
    return values.length === 0 ? this : this.presentInt64s(field, values);
  }
  presentInt64s(field: number, values: TensorValues): this {
    this.#head(field, LENGTH_DELIMITED, 8 * values.length);
    if (this.#target !== undefined) writeInt64s(values, this.#target, this.#at);
    this.#at += 8 * values.length;
    return this;
  }
  /** A non-negative integer of any width; 0 is left out, as proto3 wants it. */
  int(field: number, value: number): this {
    return value === 0 ? this : this.presentInt(field, value);
  }
  presentInt(field: number, value: number): this {
    this.#head(field, VARINT, value);
    return this;
  }
  double(field: number, value: number): this {
    this.#varint((field << 3) | BIT64);
    if (this.#target !== undefined) {
      DOUBLE[0] = value;
      this.#target.set(DOUBLE_BYTES, this.#at);
    }
    this.#at += 8;
    return this;
  }
  packedInts(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    let size = 0;
    for (const value of values) size += varintBytes(value);
    this.#head(field, LENGTH_DELIMITED, size);
    for (const value of values) this.#varint(value);
    return this;
  }
  /** A nested message, also an empty one. */
  message(field: number, write: (nested: this) => void): this {
    const index = this.#begun++;
    if (this.#target !== undefined) {
      this.#head(field, LENGTH_DELIMITED, this.#sizes[index]!);
      write(this);
      return this;
    }
    const start = this.#at;
    this.#sizes.push(0);
    write(this);
    const size = this.#at - start;
    this.#sizes[index] = size;
    this.#head(field, LENGTH_DELIMITED, size);
    return this;
  }
  /** One entry of a map with string keys; the value is field 2. */
  entry(field: number, key: string, write: (entry: this) => void): this {
    return this.message(field, (entry) => write(entry.presentString(1, key)));
  }

  /** @internal The memory for what was measured; from here on it is written. */
  start(): Uint8Array {
    // Not zeroed first: `finish` makes sure that all of it is written.
    const { buffer, byteOffset, length } = Buffer.allocUnsafeSlow(this.#at);
    this.#target = new Uint8Array(buffer, byteOffset, length);
    this.#at = 0;
    this.#begun = 0;
    return this.#target;
  }

  /** @internal @throws an Error when not all of the memory was written. */
  finish(): void {
    if (this.#at !== this.#target?.length || this.#begun !== this.#sizes.length)
      throw new Error('a message was not the same when it was measured and when it was written');
  }

  /** A field's tag, and its length or its value. */
  #head(field: number, wireType: number, value: number): void {
    this.#varint((field << 3) | wireType);
    this.#varint(value);
  }

  #varint(value: number): void {
    this.#at = this.#target === undefined ? this.#at + varintBytes(value) : writeVarint(this.#target, this.#at, value);
  }
}

const DOUBLE = new Float64Array(1);
const DOUBLE_BYTES = bytesOf(DOUBLE);

/** How many bytes a non-negative integer takes as a varint. */
function varintBytes(value: number): number {
  let bytes = 1;
  for (; value >= 128; value = Math.floor(value / 128)) bytes++;
  return bytes;
}

/** Returns where it ends. */
function writeVarint(target: Uint8Array, at: number, value: number): number {
  while (value >= 128) {
    target[at++] = (value % 128) | 128;
    value = Math.floor(value / 128);
  }
  target[at++] = value;
  return at;
}
