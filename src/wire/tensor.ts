import * as t from 'io-ts';
import { ValidationError } from './tinkerError.js';
import { NonNegativeInteger } from './number.js';

/** Element types of tensors: token ids are `int64`, everything else is `float32`. */
export type TensorDtype = 'int64' | 'float32';
/** int64 values are an Int32Array where every one fits in 32 bits (tokens always do), else safe integers as doubles. */
export type TensorValues = Float32Array | Int32Array | Float64Array;
/** A typed array of numbers. */
export type NumericArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array;
/** What a caller may give where a tensor is wanted. */
export type TensorInput = TensorData | readonly number[] | readonly (readonly number[])[] | NumericArray;

/** Where the values of a sparse matrix stand, in CSR layout. */
export interface SparseIndices {
  /** rows + 1 offsets into `colIndices`. */
  readonly crowIndices: Int32Array;
  /** The column of each listed value. */
  readonly colIndices: Int32Array;
}

/** The dtype of each named loss input, where the protocol fixes one. */
const DTYPE_BY_NAME: ReadonlyMap<string, TensorDtype> = new Map([
  ['target_tokens', 'int64'],
  ['weights', 'float32'],
  ['advantages', 'float32'],
  ['logprobs', 'float32'],
  ['clip_low_threshold', 'float32'],
  ['clip_high_threshold', 'float32'],
  ['sequence_ratio_mask', 'float32'],
]);
const SPARSE_NAMES = new Set(['target_tokens', 'weights']);

/** A dense or sparse (CSR) tensor of int64 or float32 values, flattened row by row. */
export class TensorData {
  /** Element type. */
  readonly dtype: TensorDtype;
  /** The elements, row by row; for a sparse tensor only the stored ones. */
  readonly data: TensorValues;
  /** The extent of each dimension. */
  readonly shape: readonly number[];
  /** Where the elements stand, if the tensor is sparse. Absent: dense. */
  readonly sparse?: SparseIndices;

  constructor(fields: { dtype: TensorDtype; data: TensorValues; shape?: readonly number[]; sparse?: SparseIndices }) {
    const { dtype, data, shape = [data.length], sparse } = fields;
    checkShape(data, shape, sparse);
    this.dtype = dtype;
    this.data = data;
    this.shape = shape;
    if (sparse !== undefined) this.sparse = sparse;
  }

  /**
   * Makes a tensor of numbers, nested rows or any typed array. Without a dtype: floats where a float array or a
   * fractional number is given, else int64.
   *
   * @throws ValidationError for ragged rows, or a fraction or NaN among integers.
   */
  static from(input: TensorInput, dtype?: TensorDtype, name = 'tensor'): TensorData {
    if (input instanceof TensorData) return input;
    if (ArrayBuffer.isView(input)) return TensorData.#fromArray(input, dtype, name);
    if (!Array.isArray(input)) throw new ValidationError(`${name} must be numbers, rows of numbers or a typed array`);
    const rows = input as readonly (number | readonly number[])[];
    if (!Array.isArray(rows[0])) {
      // By index: `some` passes over holes.
      for (let index = 0; index < rows.length; index++) if (typeof rows[index] !== 'number') throw ragged(name);
      return new TensorData(toValues(rows as readonly number[], dtype, name));
    }
    const columns = (rows[0] as readonly number[]).length;
    const flat: number[] = [];
    for (const row of rows) {
      if (!Array.isArray(row) || row.length !== columns || row.some((entry) => typeof entry !== 'number'))
        throw ragged(name);
      for (const entry of row as readonly number[]) flat.push(entry);
    }
    return new TensorData({ ...toValues(flat, dtype, name), shape: [rows.length, columns] });
  }

  static #fromArray(array: NumericArray, dtype: TensorDtype | undefined, name: string): TensorData {
    const isFloat = array instanceof Float32Array || array instanceof Float64Array;
    const wanted = dtype ?? (isFloat ? 'float32' : 'int64');
    if (wanted === 'float32') {
      const data = array instanceof Float32Array ? array : Float32Array.from(array as ArrayLike<number>, Number);
      return new TensorData({ dtype: 'float32', data });
    }
    if (array instanceof Int32Array) return new TensorData({ dtype: 'int64', data: array });
    const numbers = array instanceof BigInt64Array ? Array.from(array, Number) : (array as ArrayLike<number>);
    return new TensorData(toValues(numbers, 'int64', name));
  }

  /** The dense form; cells that a sparse tensor does not list take `padValue`. */
  toDense(padValue = 0): TensorData {
    if (this.sparse === undefined) return this;
    const [rows = 0, columns = 0] = this.shape;
    const data = new (this.data.constructor as new (length: number) => TensorValues)(rows * columns).fill(padValue);
    const { crowIndices, colIndices } = this.sparse;
    for (let row = 0; row < rows; row++) {
      for (let entry = crowIndices[row]!; entry < crowIndices[row + 1]!; entry++) {
        data[row * columns + colIndices[entry]!] = this.data[entry]!;
      }
    }
    return new TensorData({ dtype: this.dtype, data, shape: this.shape });
  }

  /** CSR where that is smaller than the dense form, itself where not. Only a 2-D tensor can be sparse. */
  toSparse(): TensorData {
    const [rows, columns] = this.shape;
    if (this.shape.length !== 2 || this.sparse !== undefined || rows === undefined || columns === undefined)
      return this;
    let listed = 0;
    for (const value of this.data) if (value !== 0) listed++;
    if (rows + 1 + 2 * listed >= rows * columns) return this;
    const crowIndices = new Int32Array(rows + 1);
    const colIndices = new Int32Array(listed);
    const data = new (this.data.constructor as new (length: number) => TensorValues)(listed);
    let entry = 0;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const value = this.data[row * columns + column]!;
        if (value === 0) continue;
        data[entry] = value;
        colIndices[entry++] = column;
      }
      crowIndices[row + 1] = entry;
    }
    return new TensorData({ dtype: this.dtype, data, shape: this.shape, sparse: { crowIndices, colIndices } });
  }

  /** Numbers, or rows of numbers for a 2-D tensor. */
  toArray(): number[] | number[][] {
    const { data, shape } = this.toDense();
    if (shape.length !== 2) return Array.from(data);
    const [rows = 0, columns = 0] = shape;
    return Array.from({ length: rows }, (_, row) => Array.from(data.subarray(row * columns, (row + 1) * columns)));
  }
}

/** The tensor of a named loss input: its dtype by name, and sparse where the protocol sends that name sparse. */
export function namedTensor(name: string, input: TensorInput): TensorData {
  if (input instanceof TensorData) return input;
  const tensor = TensorData.from(input, DTYPE_BY_NAME.get(name), name);
  return tensor.shape.length === 2 && SPARSE_NAMES.has(name) ? tensor.toSparse() : tensor;
}

const ragged = (name: string): ValidationError =>
  new ValidationError(`${name} must be numbers or rows of equal length; ragged or mixed lists are not supported`);

/** Typed values of plain numbers; integers are checked, floats are rounded to float32. */
function toValues(
  numbers: ArrayLike<number>,
  dtype: TensorDtype | undefined,
  name: string,
): { dtype: TensorDtype; data: TensorValues } {
  let integers = true;
  let small = true;
  for (let index = 0; index < numbers.length; index++) {
    const value = numbers[index]!;
    if (!Number.isSafeInteger(value)) integers = false;
    else if ((value | 0) !== value) small = false;
  }
  if (dtype === 'float32' || (dtype === undefined && !integers))
    return { dtype: 'float32', data: new Float32Array(numbers) };
  if (!integers) throw new ValidationError(`${name} must hold integers (dtype int64)`);
  return { dtype: 'int64', data: small ? new Int32Array(numbers) : new Float64Array(numbers) };
}

function checkShape(data: TensorValues, shape: readonly number[], sparse: SparseIndices | undefined): void {
  // Nearly every tensor of a result is a plain row, and there are thousands in one.
  if (sparse === undefined && shape.length === 1 && shape[0] === data.length) return;
  // A fraction of a row would pass where only the product is looked at.
  if (!shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0))
    throw new ValidationError(`tensor of shape [${shape.join(', ')}]: every extent must be an integer ≥ 0`);
  const size = shape.reduce((product, extent) => product * extent, 1);
  if (sparse === undefined) {
    if (size !== data.length)
      throw new ValidationError(`tensor of shape [${shape.join(', ')}] needs ${size} values, got ${data.length}`);
    return;
  }
  const [rows, columns] = shape;
  const { crowIndices, colIndices } = sparse;
  if (shape.length !== 2 || rows === undefined || columns === undefined)
    throw new ValidationError('a sparse tensor must be 2-D and have a shape');
  if (crowIndices.length !== rows + 1)
    throw new ValidationError(
      `sparse tensor with ${rows} rows needs ${rows + 1} row offsets, got ${crowIndices.length}`,
    );
  if (colIndices.length !== data.length)
    throw new ValidationError(`sparse tensor has ${data.length} values but ${colIndices.length} column indices`);
  if (
    crowIndices[0] !== 0 ||
    crowIndices[rows] !== data.length ||
    crowIndices.some((at, row) => row > 0 && at < crowIndices[row - 1]!)
  ) {
    throw new ValidationError('sparse row offsets must rise from 0 to the number of values');
  }
  if (colIndices.some((column) => column < 0 || column >= columns))
    throw new ValidationError(`sparse column indices must be in 0 … ${columns - 1}`);
}

type Raw = Readonly<Record<string, unknown>>;
const KEYS: ReadonlySet<string> = new Set(['data', 'dtype', 'shape', 'sparse_crow_indices', 'sparse_col_indices']);
const Dtype = t.union([t.literal('int64'), t.literal('float32')], "'int64' | 'float32'");

/** A mistake in one field of a tensor. */
const mistake = (
  context: t.Context,
  key: string,
  type: t.ContextEntry['type'],
  message?: string,
): t.ValidationError => ({
  value: undefined,
  context: t.appendContext(context, key, type),
  ...(message === undefined ? {} : { message }),
});

/** Floats; null, which is how JSON writes NaN, is NaN. */
function toFloats(entries: readonly (number | null)[]): Float32Array {
  const floats = new Float32Array(entries.length);
  for (let index = 0; index < entries.length; index++) floats[index] = entries[index] ?? NaN;
  return floats;
}

/** One list of numbers among a tensor's fields, or what is wrong with it. */
function numbersIn(raw: Raw, key: string, context: t.Context, nullable: boolean): number[] | t.ValidationError {
  const entries = raw[key];
  if (!Array.isArray(entries)) return mistake(context, key, t.array(t.number));
  // One loop that stops at the first mistake: a million bad entries must not make a million errors.
  for (let index = 0; index < entries.length; index++) {
    const entry: unknown = entries[index];
    if (typeof entry === 'number' || (nullable && entry === null)) continue;
    const { context: list } = mistake(context, key, t.UnknownArray);
    return { value: undefined, context: [...list, { key: String(index), type: t.number }] };
  }
  return entries as number[];
}

function indicesIn(raw: Raw, key: string, context: t.Context): Int32Array | t.ValidationError {
  const numbers = numbersIn(raw, key, context, false);
  if (!Array.isArray(numbers)) return numbers;
  const indices = new Int32Array(numbers);
  const bad = numbers.findIndex((value, index) => indices[index] !== value);
  return bad < 0 ? indices : mistake(context, key, t.UnknownArray, `entry ${bad} is not an index`);
}

function shapeIn(raw: Raw, context: t.Context): number[] | t.ValidationError {
  const shape = numbersIn(raw, 'shape', context, false);
  return !Array.isArray(shape) || shape.every((extent) => NonNegativeInteger.is(extent))
    ? shape
    : mistake(context, 'shape', t.array(NonNegativeInteger));
}

/**
 * The JSON form of a tensor. What a client sends is read strictly; a server's result may have keys that are new, and null
 * if a number is not finite.
 */
function tensorCodec(from: 'client' | 'server'): t.Type<TensorData, object> {
  const validate = (u: unknown, context: t.Context): t.Validation<TensorData> => {
    if (typeof u !== 'object' || u === null || Array.isArray(u)) return t.failure(u, context);
    const raw = u as Raw;
    const unknown = from === 'client' ? Object.keys(raw).find((key) => !KEYS.has(key)) : undefined;
    if (unknown !== undefined) return t.failures([mistake(context, unknown, t.never, 'unknown key')]);
    const { dtype } = raw;
    if (!Dtype.is(dtype)) return t.failures([mistake(context, 'dtype', Dtype)]);
    const data = numbersIn(raw, 'data', context, from === 'server' && dtype === 'float32');
    const [shape, crowIndices, colIndices] = [
      (raw['shape'] ?? null) === null ? undefined : shapeIn(raw, context),
      (raw['sparse_crow_indices'] ?? null) === null ? undefined : indicesIn(raw, 'sparse_crow_indices', context),
      (raw['sparse_col_indices'] ?? null) === null ? undefined : indicesIn(raw, 'sparse_col_indices', context),
    ];
    for (const read of [data, shape, crowIndices, colIndices])
      if (read !== undefined && 'context' in read) return t.failures([read]);
    try {
      return t.success(
        new TensorData({
          ...(dtype === 'float32'
            ? { dtype, data: toFloats(data as number[]) }
            : toValues(data as number[], dtype, 'tensor')),
          ...(shape === undefined ? {} : { shape: shape as number[] }),
          ...(crowIndices === undefined || colIndices === undefined
            ? {}
            : { sparse: { crowIndices: crowIndices as Int32Array, colIndices: colIndices as Int32Array } }),
        }),
      );
    } catch (error) {
      if (error instanceof ValidationError) return t.failure(u, context, error.message);
      throw error;
    }
  };
  return new t.Type('TensorData', (u): u is TensorData => u instanceof TensorData, validate, tensorJson);
}

const tensorJson = (tensor: TensorData): object => ({
  data: Array.from(tensor.data),
  dtype: tensor.dtype,
  shape: [...tensor.shape],
  ...(tensor.sparse === undefined
    ? {}
    : {
        sparse_crow_indices: Array.from(tensor.sparse.crowIndices),
        sparse_col_indices: Array.from(tensor.sparse.colIndices),
      }),
});

/** A tensor in a request. */
export const TensorDataCodec: t.Type<TensorData, object> = tensorCodec('client');
/** A tensor in a result. */
export const TensorResultCodec: t.Type<TensorData, object> = tensorCodec('server');
