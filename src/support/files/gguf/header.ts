import { isReadable, TENSOR_TYPES, typeName } from './tensorTypes.js';

/** A value of the metadata. Integers are numbers: none of a model needs more than 53 bits. */
export type GgufValue = number | boolean | string | readonly GgufValue[];

/** One tensor of a GGUF file. Its bytes are `start` up to `end` of the file. */
export interface GgufTensor {
  /** `F32`, `Q4_1`, …; `type 99` for one that this code does not know. */
  readonly type: string;
  /** Row major: the reverse of what the file says. */
  readonly shape: readonly number[];
  readonly start: number;
  /** Undefined for a type that is not read here. */
  readonly end: number | undefined;
}

export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** The bytes at hand end within the header. */
export class NeedsMoreBytes extends Error {}

const MAGIC = 0x46554747;
const ALIGNMENT = 32;
const MAX_DIMENSIONS = 4;

/**
 * Reads the header of a GGUF file from its first bytes.
 *
 * @throws NeedsMoreBytes if the header is longer than `bytes`
 * @throws Error if the file is damaged or of another version; `name` says which one
 * @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (format)
 */
export function parseGgufHeader(bytes: Uint8Array, name: string): GgufHeader {
  const reader = new Reader(bytes, name);
  if (reader.u32() !== MAGIC) throw new Error(`${name} is not a GGUF file`);
  const version = reader.u32();
  if (version !== 2 && version !== 3)
    throw new Error(`${name}: GGUF version ${version} is not read here, only 2 and 3`);
  const tensorCount = reader.count();
  const valueCount = reader.count();
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < valueCount; i++) metadata.set(reader.text(), reader.value(reader.u32()));
  const alignment = metadata.get('general.alignment') ?? ALIGNMENT;
  if (typeof alignment !== 'number' || !(alignment > 0) || alignment % 8 !== 0)
    throw new Error(`${name}: general.alignment is ${String(alignment)}, not a multiple of 8`);
  const infos = Array.from({ length: tensorCount }, () => reader.tensor());
  const dataStart = Math.ceil(reader.at / alignment) * alignment;
  const tensors = new Map(
    infos.map(({ key, type, shape, offset }) => {
      const size = byteLength(type, shape, `${name}: ${key}`);
      const start = dataStart + offset;
      return [key, { type, shape, start, end: size === undefined ? undefined : start + size }];
    }),
  );
  return { metadata, tensors };
}

function byteLength(type: string, shape: readonly number[], where: string): number | undefined {
  if (!isReadable(type)) return undefined;
  const { elements, bytes } = TENSOR_TYPES[type];
  const row = shape.at(-1) ?? 1;
  if (row % elements !== 0) throw new Error(`${where} has rows of ${row}, and ${type} stores blocks of ${elements}`);
  return (shape.reduce((size, dimension) => size * dimension, 1) / elements) * bytes;
}

class Reader {
  at = 0;
  readonly #view: DataView;
  readonly #decoder = new TextDecoder();

  constructor(
    private readonly bytes: Uint8Array,
    private readonly name: string,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** A length or a number of things. */
  count(): number {
    const count = Number(this.#view.getBigUint64(this.#take(8), true));
    if (!Number.isSafeInteger(count)) throw new Error(`${this.name} is damaged: it counts ${count} things`);
    return count;
  }

  text(): string {
    const length = this.count();
    const start = this.#take(length);
    return this.#decoder.decode(this.bytes.subarray(start, start + length));
  }

  value(type: number): GgufValue {
    if (type === 8) return this.text();
    if (type === 9) {
      const of = this.u32();
      const length = this.count();
      const values: GgufValue[] = [];
      // Grows as elements are found: a damaged length ends at the end of the bytes.
      for (let i = 0; i < length; i++) values.push(this.value(of));
      return values;
    }
    const read = NUMBERS[type];
    if (read === undefined) throw new Error(`${this.name} is damaged: a value of its metadata has type ${type}`);
    return read[1](this.#view, this.#take(read[0]));
  }

  tensor(): {
    readonly key: string;
    readonly type: string;
    readonly shape: readonly number[];
    readonly offset: number;
  } {
    const key = this.text();
    const dimensions = this.u32();
    if (dimensions > MAX_DIMENSIONS) throw new Error(`${this.name}: ${key} has ${dimensions} dimensions`);
    const shape = Array.from({ length: dimensions }, () => this.count()).reverse();
    return { key, shape, type: typeName(this.u32()), offset: this.count() };
  }

  #take(length: number): number {
    const start = this.at;
    if (start + length > this.bytes.length) throw new NeedsMoreBytes();
    this.at += length;
    return start;
  }
}

/** Size, and how to read it, by the number of the type. */
const NUMBERS: Readonly<Record<number, readonly [number, (view: DataView, at: number) => number | boolean]>> = {
  0: [1, (view, at) => view.getUint8(at)],
  1: [1, (view, at) => view.getInt8(at)],
  2: [2, (view, at) => view.getUint16(at, true)],
  3: [2, (view, at) => view.getInt16(at, true)],
  4: [4, (view, at) => view.getUint32(at, true)],
  5: [4, (view, at) => view.getInt32(at, true)],
  6: [4, (view, at) => view.getFloat32(at, true)],
  7: [1, (view, at) => view.getUint8(at) !== 0],
  10: [8, (view, at) => Number(view.getBigUint64(at, true))],
  11: [8, (view, at) => Number(view.getBigInt64(at, true))],
  12: [8, (view, at) => view.getFloat64(at, true)],
};
