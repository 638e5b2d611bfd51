import { decodeFloats, encodeFloats } from '../../../support/files/floats.js';
import { decodeHeader, encodeHeader } from '../../../support/files/safetensors.js';
import type { NamedTensor } from '../types.js';

/** The two storage types written and read here. */
export type SafetensorsDtype = 'F32' | 'BF16';

export interface SafetensorsFile {
  readonly tensors: Readonly<Record<string, NamedTensor>>;
  /** The file's `__metadata__`: text by name. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Encodes tensors as a safetensors file, in the order given. BF16 rounds to nearest even. */
export function encodeSafetensors(
  tensors: Readonly<Record<string, NamedTensor>>,
  {
    metadata,
    dtype = 'F32',
  }: { readonly metadata?: Readonly<Record<string, string>>; readonly dtype?: SafetensorsDtype } = {},
): Uint8Array<ArrayBuffer> {
  const width = dtype === 'F32' ? 4 : 2;
  const entries = Object.entries(tensors).map(([name, { shape, data }]) => ({
    ...{ name, dtype, shape, data },
    byteLength: data.length * width,
  }));
  const header = encodeHeader(entries, metadata);
  const file = new Uint8Array(entries.reduce((size, { byteLength }) => size + byteLength, header.length));
  file.set(header);
  let at = header.length;
  for (const { data, byteLength } of entries) {
    encodeFloats(data, dtype, file.subarray(at, at + byteLength));
    at += byteLength;
  }
  return file;
}

/** Decodes a safetensors file to float32 tensors. Throws if it is cut short, overlaps, or holds another dtype. */
export function decodeSafetensors(file: Uint8Array): SafetensorsFile {
  const { tensors, metadata = {} } = decodeHeader(file, 'the data');
  const decoded: Record<string, NamedTensor> = {};
  for (const [name, { dtype, shape, start, end }] of tensors) {
    decoded[name] = { shape, data: decodeFloats(file.subarray(start, end), dtype, name) };
  }
  return { tensors: decoded, metadata };
}
