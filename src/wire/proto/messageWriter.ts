import { writePart, type Part } from './bytes.js';

const LENGTH_DELIMITED = 2;
const VARINT = 0;
const BIT64 = 1;
const utf8 = new TextEncoder();

/**
 * Writes one protobuf message as a list of parts that are joined once, at the end.
 *
 * The usual writer moves a nested message each time its length becomes known, once for every level; training data is
 * nested four deep and megabytes long, so that costs more than all the rest.
 */
export class MessageWriter {
  readonly #parts: (Uint8Array | Part)[] = [];
  #size = 0;

  string(field: number, value: string): this {
    return value === '' ? this : this.presentString(field, value);
  }
  /** Text that says something by being there, also when empty. */
  presentString(field: number, value: string): this {
    return this.presentBytes(field, utf8Of(value));
  }
  bytes(field: number, value: Uint8Array | Part): this {
    return value.length === 0 ? this : this.presentBytes(field, value);
  }
  /** Bytes that say something by being there, also when empty (a oneof arm, an optional). */
  presentBytes(field: number, value: Uint8Array | Part): this {
    this.#push(varints((field << 3) | LENGTH_DELIMITED, value.length));
    return value.length === 0 ? this : this.#push(value);
  }
  /** A non-negative integer of any width; 0 is left out, as proto3 wants it. */
  int(field: number, value: number): this {
    return value === 0 ? this : this.presentInt(field, value);
  }
  presentInt(field: number, value: number): this {
    return this.#push(varints((field << 3) | VARINT, value));
  }
  double(field: number, value: number): this {
    const part = new Uint8Array(8);
    new DataView(part.buffer).setFloat64(0, value, true);
    return this.#push(varints((field << 3) | BIT64)).#push(part);
  }
  packedInts(field: number, values: readonly number[]): this {
    return values.length === 0 ? this : this.presentBytes(field, varintsOf(values));
  }
  /** A nested message, also an empty one. */
  message(field: number, write: (nested: MessageWriter) => void): this {
    const nested = new MessageWriter();
    write(nested);
    this.#push(varints((field << 3) | LENGTH_DELIMITED, nested.#size));
    for (const part of nested.#parts) this.#push(part);
    return this;
  }
  /** One entry of a map with string keys; the value is field 2. */
  entry(field: number, key: string, write: (entry: MessageWriter) => void): this {
    return this.message(field, (entry) => write(entry.presentString(1, key)));
  }

  finish(): Uint8Array {
    const message = new Uint8Array(this.#size);
    let at = 0;
    for (const part of this.#parts) {
      writePart(part, message, at);
      at += part.length;
    }
    return message;
  }

  #push(part: Uint8Array | Part): this {
    this.#parts.push(part);
    this.#size += part.length;
    return this;
  }
}

/** Longer texts are not remembered, nor more than a few: names of fields and losses repeat thousands of times in a request. */
const LONGEST_REMEMBERED = 64;
const MOST_REMEMBERED = 256;
const remembered = new Map<string, Uint8Array>();

function utf8Of(text: string): Uint8Array {
  if (text.length > LONGEST_REMEMBERED) return utf8.encode(text);
  let bytes = remembered.get(text);
  if (bytes === undefined) {
    if (remembered.size >= MOST_REMEMBERED) remembered.clear();
    remembered.set(text, (bytes = utf8.encode(text)));
  }
  return bytes;
}

/** Two varints of 64 bits, and some to spare. */
const scratch = new Uint8Array(24);

/** A field's tag and, where it has one, its length, as varints. */
function varints(first: number, second?: number): Uint8Array {
  let end = writeVarint(scratch, 0, first);
  if (second !== undefined) end = writeVarint(scratch, end, second);
  return scratch.slice(0, end);
}

/** Non-negative integers as varints, one behind the other. */
function varintsOf(values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(10 * values.length);
  let end = 0;
  for (const value of values) end = writeVarint(bytes, end, value);
  return bytes.subarray(0, end);
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
