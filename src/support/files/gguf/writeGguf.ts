import { open } from 'node:fs/promises';
import { TENSOR_TYPES, type TensorTypeName } from './tensorTypes.js';

/** A value of the metadata with its type in the file. */
export type GgufField =
  | { readonly type: 'u32' | 'f32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'i32s'; readonly value: readonly number[] };

/** A tensor to write. Its bytes are asked for when their place is reached. */
export interface GgufTensorToWrite {
  readonly name: string;
  readonly type: TensorTypeName;
  /** Row major. */
  readonly shape: readonly number[];
  readonly bytes: () => Promise<Uint8Array>;
}

const TYPE_IDS = { u32: 4, f32: 6, bool: 7, string: 8 } as const;
const ALIGNMENT = 32;
const padded = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** Writes a GGUF file of version 3, one tensor at a time. Gives its size in bytes. */
export async function writeGguf(
  path: string,
  metadata: ReadonlyMap<string, GgufField>,
  tensors: readonly GgufTensorToWrite[],
): Promise<number> {
  const header = encodeHeader(metadata, tensors);
  const file = await open(path, 'w');
  try {
    let at = padded(header.length);
    await file.write(header, 0, header.length, 0);
    for (const tensor of tensors) {
      const bytes = await tensor.bytes();
      if (bytes.length !== byteLength(tensor))
        throw new Error(`${tensor.name}: wrote ${bytes.length} of ${byteLength(tensor)} bytes`);
      await file.write(bytes, 0, bytes.length, at);
      at += padded(bytes.length);
    }
    // The last tensor is padded as well.
    await file.truncate(at);
    return at;
  } finally {
    await file.close();
  }
}

function byteLength({ type, shape }: GgufTensorToWrite): number {
  const { elements, bytes } = TENSOR_TYPES[type];
  return (shape.reduce((size, dimension) => size * dimension, 1) / elements) * bytes;
}

function encodeHeader(metadata: ReadonlyMap<string, GgufField>, tensors: readonly GgufTensorToWrite[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const push = (bytes: number, write: (view: DataView) => void) => {
    const part = new Uint8Array(bytes);
    write(new DataView(part.buffer));
    parts.push(part);
  };
  const u32 = (value: number) => push(4, (view) => view.setUint32(0, value, true));
  const i32 = (value: number) => push(4, (view) => view.setInt32(0, value, true));
  const f32 = (value: number) => push(4, (view) => view.setFloat32(0, value, true));
  const u64 = (value: number) => push(8, (view) => view.setBigUint64(0, BigInt(value), true));
  const text = (value: string) => {
    const bytes = new TextEncoder().encode(value);
    u64(bytes.length);
    parts.push(bytes);
  };
  const list = <T>(type: number, values: readonly T[], write: (value: T) => void) => {
    u32(9);
    u32(type);
    u64(values.length);
    values.forEach(write);
  };
  const write = (field: GgufField): void => {
    if (field.type === 'strings') return list(8, field.value, text);
    if (field.type === 'i32s') return list(5, field.value, i32);
    u32(TYPE_IDS[field.type]);
    if (field.type === 'string') return text(field.value);
    if (field.type === 'bool') return push(1, (view) => view.setUint8(0, Number(field.value)));
    return field.type === 'u32' ? u32(field.value) : f32(field.value);
  };
  parts.push(new TextEncoder().encode('GGUF'));
  u32(3);
  u64(tensors.length);
  u64(metadata.size);
  for (const [key, field] of metadata) {
    text(key);
    write(field);
  }
  let offset = 0;
  for (const tensor of tensors) {
    text(tensor.name);
    u32(tensor.shape.length);
    [...tensor.shape].reverse().forEach(u64);
    u32(TENSOR_TYPES[tensor.type].id);
    u64(offset);
    offset += padded(byteLength(tensor));
  }
  return new Uint8Array(Buffer.concat(parts));
}
