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
  readonly #parts: Uint8Array[] = [];
  #size = 0;

  string(field: number, value: string): this {
    return value === '' ? this : this.presentString(field, value);
  }
  /** Text that says something by being there, also when empty. */
  presentString(field: number, value: string): this {
    return this.presentBytes(field, utf8.encode(value));
  }
  bytes(field: number, value: Uint8Array): this {
    return value.length === 0 ? this : this.presentBytes(field, value);
  }
  /** Bytes that say something by being there, also when empty (a oneof arm, an optional). */
  presentBytes(field: number, value: Uint8Array): this {
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
      message.set(part, at);
      at += part.length;
    }
    return message;
  }

  #push(part: Uint8Array): this {
    this.#parts.push(part);
    this.#size += part.length;
    return this;
  }
}

/** Non-negative integers as varints, one behind the other. */
const varints = (...values: readonly number[]): Uint8Array => varintsOf(values);

function varintsOf(values: readonly number[]): Uint8Array {
  const bytes: number[] = [];
  for (let value of values) {
    while (value >= 128) {
      bytes.push((value % 128) | 128);
      value = Math.floor(value / 128);
    }
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}
