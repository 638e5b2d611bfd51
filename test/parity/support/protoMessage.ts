import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { Json } from './fixture.js';

/**
 * Reads a ForwardBackwardRequest into the standard JSON form of protobuf, in which the fixtures hold the SDK's. Written
 * from the schema alone and independent of `src/wire`, so that a mistake there cannot hide behind itself.
 */
export const requestJson = (bytes: Uint8Array): { readonly [key: string]: Json } => read('Request', bytes);

/** `explicit`: told even where it holds the default, as members of a oneof and optional fields are. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly repeated?: boolean;
  readonly map?: boolean;
  readonly explicit?: boolean;
}
const oneof = (name: string, type: string): Field => ({ name, type, explicit: true });
const list = (name: string, type: string): Field => ({ name, type, repeated: true });
const map = (name: string, type: string): Field => ({ name, type, map: true });
const one = (name: string, type: string): Field => ({ name, type });

const SPAN = { 1: one('sequence_id', 'string'), 2: one('offset', 'int64'), 3: one('length', 'int64') };
const MESSAGES: Readonly<Record<string, Readonly<Record<number, Field>>>> = {
  Request: {
    1: one('model_id', 'string'),
    2: one('seq_id', 'int32'),
    3: list('data', 'Datum'),
    4: one('loss_fn', 'string'),
    5: map('loss_fn_config', 'double'),
    6: one('forward_only', 'bool'),
    7: map('loss_fn_config_v2', 'ConfigValue'),
  },
  ConfigValue: { 1: oneof('number', 'double'), 2: oneof('text', 'string') },
  Datum: {
    1: list('model_input', 'Chunk'),
    2: map('loss_fn_inputs', 'Tensor'),
    3: list('model_input_spans', 'Provenance'),
    4: list('loss_fn_input_spans', 'Provenance'),
  },
  Provenance: { 1: oneof('prompt_tokens', 'Span'), 2: oneof('sampled_tokens', 'Span') },
  Span: SPAN,
  Chunk: { 1: oneof('encoded_text', 'Text'), 2: oneof('image', 'Image'), 3: oneof('dmel', 'Dmel') },
  Text: { 1: one('tokens', 'bytes') },
  Image: { 1: one('data', 'bytes'), 2: one('format', 'string'), 3: oneof('expected_tokens', 'int32') },
  Dmel: { 1: one('dmel', 'bytes') },
  Tensor: {
    1: oneof('dense', 'bytes'),
    2: oneof('sparse_csr', 'Sparse'),
    3: one('dtype', 'dtype'),
    4: list('shape', 'int64'),
  },
  Sparse: { 1: one('values', 'bytes'), 2: one('crow_indices', 'bytes'), 3: one('col_indices', 'bytes') },
};
const DTYPES = ['DTYPE_UNSPECIFIED', 'DTYPE_FLOAT32', 'DTYPE_INT64', 'DTYPE_INT32', 'DTYPE_BFLOAT16'];

const SCALARS: Readonly<Record<string, { readonly read: (reader: BinaryReader) => Json; readonly empty: Json }>> = {
  string: { read: (reader) => reader.string(), empty: '' },
  int32: { read: (reader) => reader.int32(), empty: 0 },
  int64: { read: (reader) => String(reader.int64()), empty: '0' },
  bool: { read: (reader) => reader.bool(), empty: false },
  double: { read: (reader) => reader.double(), empty: 0 },
  bytes: { read: (reader) => Buffer.from(reader.bytes()).toString('base64'), empty: '' },
  dtype: { read: (reader) => DTYPES[reader.int32()] ?? '?', empty: DTYPES[0]! },
};

function readValue(type: string, reader: BinaryReader): Json {
  const scalar = SCALARS[type];
  return scalar === undefined ? read(type, reader.bytes()) : scalar.read(reader);
}

function read(message: string, bytes: Uint8Array): Record<string, Json> {
  const fields = MESSAGES[message]!;
  const reader = new BinaryReader(bytes);
  const result: Record<string, Json> = {};
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const field = fields[number];
    if (field === undefined) throw new Error(`${message} has no field ${number}`);
    const { name, type, repeated, map: isMap, explicit } = field;
    if (isMap) {
      const [key, value] = readEntry(type, reader.bytes());
      result[name] = { ...(result[name] as Record<string, Json>), [key]: value };
    } else if (repeated) {
      const items = (result[name] ??= []) as Json[];
      // Packed numbers come as one length-delimited run.
      if (type === 'int64' && (wireType as number) === 2) {
        const end = reader.uint32() + reader.pos;
        while (reader.pos < end) items.push(readValue(type, reader));
      } else items.push(readValue(type, reader));
    } else {
      const value = readValue(type, reader);
      if (explicit || value !== SCALARS[type]?.empty) result[name] = value;
    }
  }
  return result;
}

function readEntry(type: string, bytes: Uint8Array): [string, Json] {
  const reader = new BinaryReader(bytes);
  let key = '';
  let value: Json = SCALARS[type]?.empty ?? {};
  while (reader.pos < reader.len) {
    const [number] = reader.tag();
    if (number === 1) key = reader.string();
    else value = readValue(type, reader);
  }
  return [key, value];
}

/** JSON with sorted keys and no spaces, as the recorder digests it. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value as Record<string, Json>).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(',')}}`;
}
