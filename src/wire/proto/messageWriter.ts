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
  const measured = new MessageWriter();
  write(measured);
  // Not zeroed first: all of it is written, or this throws.
  const { buffer, byteOffset, length } = Buffer.allocUnsafeSlow(measured.length);
  const message = new Uint8Array(buffer, byteOffset, length);
  const writer = new MessageWriter(message, measured.sizes);
  write(writer);
  if (writer.length !== length || writer.begun !== measured.begun)
    throw new Error('a message was not the same when it was measured and when it was written');
  return message;
}

/** What {@link encodeMessage} hands to its callback. */
export class MessageWriter {
  /** Bytes measured or written so far. */
  length = 0;
  /** How many nested messages have begun. */
  begun = 0;

  constructor(
    /** The memory to write into; undefined while it measures. */
    readonly target?: Uint8Array,
    /** Of the nested messages, in the order in which they begin. */
    readonly sizes: number[] = [],
  ) {}

  string(field: number, value: string): this {
    return value === '' ? this : this.presentBytes(field, utf8.encode(value));
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
    this.target?.set(value instanceof Uint8Array ? value : bytesOf(value), this.length);
    this.length += byteLength;
    return this;
  }
  /** Integers as the bytes of int64 values. */
  int64s(field: number, values: TensorValues): this {
    return values.length === 0 ? this : this.presentInt64s(field, values);
  }
  presentInt64s(field: number, values: TensorValues): this {
    this.#head(field, LENGTH_DELIMITED, 8 * values.length);
    if (this.target !== undefined) writeInt64s(values, this.target, this.length);
    this.length += 8 * values.length;
    return this;
  }
  /** A non-negative integer of any width; 0 is left out, as proto3 wants it. */
  int(field: number, value: number): this {
    if (value !== 0) this.#head(field, VARINT, value);
    return this;
  }
  presentInt(field: number, value: number): this {
    this.#head(field, VARINT, value);
    return this;
  }
  double(field: number, value: number): this {
    this.#varint((field << 3) | BIT64);
    if (this.target !== undefined) {
      DOUBLE[0] = value;
      this.target.set(DOUBLE_BYTES, this.length);
    }
    this.length += 8;
    return this;
  }
  packedInts(field: number, values: readonly number[]): this {
    return values.length === 0 ? this : this.message(field, () => values.forEach((value) => this.#varint(value)));
  }
  /** A nested message, also an empty one. */
  message(field: number, write: (nested: this) => void): this {
    const index = this.begun++;
    if (this.target !== undefined) {
      this.#head(field, LENGTH_DELIMITED, this.sizes[index]!);
      write(this);
      return this;
    }
    const start = this.length;
    this.sizes.push(0);
    write(this);
    const size = this.length - start;
    this.sizes[index] = size;
    this.#head(field, LENGTH_DELIMITED, size);
    return this;
  }
  /** One entry of a map with string keys; the value is field 2. */
  entry(field: number, key: string, write: (entry: this) => void): this {
    return this.message(field, (entry) => write(entry.presentBytes(1, utf8.encode(key))));
  }

  /** A field's tag, and its length or its value. */
  #head(field: number, wireType: number, value: number): void {
    this.#varint((field << 3) | wireType);
    this.#varint(value);
  }

  /** A non-negative integer, seven bits at a time. */
  #varint(value: number): void {
    const { target } = this;
    for (; value >= 128; value = Math.floor(value / 128)) {
      if (target !== undefined) target[this.length] = (value % 128) | 128;
      this.length++;
    }
    if (target !== undefined) target[this.length] = value;
    this.length++;
  }
}

const DOUBLE = new Float64Array(1);
const DOUBLE_BYTES = bytesOf(DOUBLE);
