import { decodeFloats, fromHalf } from '../floats.js';

/** How a type of GGUF stores numbers: blocks of `elements`, of `bytes` each. */
interface TensorType {
  readonly id: number;
  readonly elements: number;
  readonly bytes: number;
  /** Writes the values of the blocks, as float32. */
  readonly decode: (blocks: Uint8Array, values: Float32Array) => void;
}

const BLOCK = 32;

const plain = (id: number, name: 'F32' | 'F16' | 'BF16', bytes: number): TensorType => ({
  id,
  elements: 1,
  bytes,
  decode: (blocks, values) => values.set(decodeFloats(blocks, name, name)),
});

const half = (bytes: Uint8Array, at: number): number => fromHalf(bytes[at]! | (bytes[at + 1]! << 8));

/**
 * The types that are read here. Values equal those of Python's `gguf` bit for bit: a scale is a float16, a product with a small integer is
 * exact, and a sum is rounded once.
 */
export const TENSOR_TYPES = {
  F32: plain(0, 'F32', 4),
  F16: plain(1, 'F16', 2),
  BF16: plain(30, 'BF16', 2),
  Q4_0: {
    id: 2,
    elements: BLOCK,
    bytes: 2 + BLOCK / 2,
    decode: (blocks, values) => decodeNibbles(blocks, values, 2, (scale, _, quant) => scale * (quant - 8)),
  },
  Q4_1: {
    id: 3,
    elements: BLOCK,
    bytes: 4 + BLOCK / 2,
    decode: (blocks, values) => decodeNibbles(blocks, values, 4, (scale, least, quant) => scale * quant + least),
  },
  Q8_0: {
    id: 8,
    elements: BLOCK,
    bytes: 2 + BLOCK,
    decode: (blocks, values) => {
      const quants = new Int8Array(blocks.buffer, blocks.byteOffset, blocks.length);
      for (let at = 0, to = 0; at < blocks.length; at += 2 + BLOCK, to += BLOCK) {
        const scale = half(blocks, at);
        for (let i = 0; i < BLOCK; i++) values[to + i] = scale * quants[at + 2 + i]!;
      }
    },
  },
} as const satisfies Readonly<Record<string, TensorType>>;

/** A type of GGUF that is read here. */
export type TensorTypeName = keyof typeof TENSOR_TYPES;

/** Types that exist and are not read here, for messages. */
const OTHERS: Readonly<Record<number, string>> = {
  ...{ 6: 'Q5_0', 7: 'Q5_1', 9: 'Q8_1', 10: 'Q2_K', 11: 'Q3_K', 12: 'Q4_K', 13: 'Q5_K', 14: 'Q6_K', 15: 'Q8_K' },
  ...{ 16: 'IQ2_XXS', 17: 'IQ2_XS', 18: 'IQ3_XXS', 19: 'IQ1_S', 20: 'IQ4_NL', 21: 'IQ3_S', 22: 'IQ2_S', 23: 'IQ4_XS' },
  ...{ 24: 'I8', 25: 'I16', 26: 'I32', 27: 'I64', 28: 'F64', 29: 'IQ1_M', 34: 'TQ1_0', 35: 'TQ2_0', 39: 'MXFP4' },
};

const NAMES: Readonly<Record<number, TensorTypeName>> = Object.fromEntries(
  Object.entries(TENSOR_TYPES).map(([name, { id }]) => [id, name as TensorTypeName]),
);

/** The name of a type by its number in the file; of one that is not read here too. */
export const typeName = (id: number): string => NAMES[id] ?? OTHERS[id] ?? `type ${id}`;

/** Whether tensors of a type are read here. */
export const isReadable = (type: string): type is TensorTypeName => Object.hasOwn(TENSOR_TYPES, type);

/** Both halves of a block are 16 bytes: low nibbles are its first 16 values, high ones the last. */
function decodeNibbles(
  blocks: Uint8Array,
  values: Float32Array,
  head: number,
  value: (scale: number, least: number, quant: number) => number,
): void {
  const size = head + BLOCK / 2;
  for (let at = 0, to = 0; at < blocks.length; at += size, to += BLOCK) {
    const scale = half(blocks, at);
    const least = head === 4 ? half(blocks, at + 2) : 0;
    for (let i = 0; i < BLOCK / 2; i++) {
      const byte = blocks[at + head + i]!;
      values[to + i] = value(scale, least, byte & 15);
      values[to + i + BLOCK / 2] = value(scale, least, byte >> 4);
    }
  }
}
