import { ModelInput, TensorData, type Datum, type ModelInputChunk } from 'tinker-rx';

export const PROMPT = ModelInput.fromInts([1, 2, 3, 4, 5]);
export const PARAMS = { maxTokens: 3 };

const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));
const PNG = bytes('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489');
const JPEG = bytes('ffd8ffe000104a46494600010100000100010000ffd9');
const DMEL = Uint8Array.of(0, 2, 3, 2, 1, 2, 3, 4, 5, 6);

/** The datum of the loss scenarios. */
export const datum = (inputs: Datum['lossFnInputs'] = {}): Datum => ({
  modelInput: ModelInput.fromInts([1, 2, 3]),
  lossFnInputs: { target_tokens: [2, 3, 4], ...inputs },
});
export const ONES = { weights: [1, 1, 1] };

/** Datum n has tokens n, n + 1, … modulo 1000, the same as targets, and weights of one. */
export const datums = (lengths: readonly number[]): Datum[] =>
  lengths.map((length, index) => {
    const tokens = Int32Array.from({ length }, (_, position) => (index + position) % 1000);
    return {
      modelInput: ModelInput.fromInts(tokens),
      lossFnInputs: { target_tokens: tokens, weights: new Float32Array(length).fill(1) },
    };
  });

const counted = (length: number, lossFnInputs: Datum['lossFnInputs'] = {}): Datum => ({
  modelInput: ModelInput.fromInts(Array.from({ length }, (_, index) => index + 1)),
  lossFnInputs,
});
const SPARSE = { crowIndices: Int32Array.of(0, 1, 1, 2, 2), colIndices: Int32Array.of(3, 0) };
const floats = (data: readonly number[], shape: readonly number[]): TensorData =>
  new TensorData({ dtype: 'float32', data: Float32Array.from(data), shape });

/** By the names that the recording gives the kinds. Our counterpart of a numpy array is a typed array. */
export const TENSORS: Readonly<Record<string, Datum>> = {
  lists: counted(3, { target_tokens: [2, 3, 4], weights: [0.1, 1, -2.5] }),
  'integers for a float input': counted(3, { target_tokens: [2, 3, 4], weights: [1, 0, 1] }),
  'numpy int32 and float64': counted(2, { target_tokens: Int32Array.of(2, 3), weights: Float64Array.of(0.1, 1e-30) }),
  // JavaScript has no half precision array here; 0.0999755859375 is the half nearest to 0.1.
  'numpy int16 and float16': counted(2, { target_tokens: Int16Array.of(2, 3), weights: [0.0999755859375, 2] }),
  'numpy int64 and float32': counted(2, { target_tokens: BigInt64Array.of(2n, 3n), weights: Float32Array.of(0.1, 2) }),
  'two dimensions, lists': counted(2, {
    target_tokens: [
      [2, 3],
      [4, 5],
    ],
    weights: [
      [0.5, 0.5],
      [1, 0.25],
    ],
  }),
  'two dimensions, numpy': counted(2, {
    target_tokens: new TensorData({ dtype: 'int64', data: Int32Array.of(2, 3, 4, 5), shape: [2, 2] }),
    weights: floats([0.5, 0.5, 1, 0.25], [2, 2]),
  }),
  sparse: counted(4, {
    target_tokens: new TensorData({ dtype: 'int64', data: Int32Array.of(7, 9), shape: [4, 8], sparse: SPARSE }),
    weights: new TensorData({ dtype: 'float32', data: Float32Array.of(0.5, 0.25), shape: [4, 8], sparse: SPARSE }),
  }),
  'wide integers': counted(2, { target_tokens: [2, 3], wide: TensorData.from([2 ** 40, -1], 'int64') }),
  'float32 edges': counted(2, { target_tokens: [2, 3], weights: floats([3.4028234663852886e38, 1e-45], [2]) }),
  'a scalar': counted(2, { target_tokens: [2, 3], scale: floats([1.5], []) }),
  'no values': counted(2, { target_tokens: [2, 3], none: floats([], [0]) }),
  'no inputs': counted(2),
};

const text = (...tokens: number[]): ModelInputChunk => ({ type: 'encoded_text', tokens: Int32Array.from(tokens) });
export const CHUNKS: Readonly<Record<string, readonly ModelInputChunk[]>> = {
  'text in two chunks': [text(1, 2), text(3)],
  png: [text(1, 2), { type: 'image', data: PNG, format: 'png' }, text(1, 2)],
  'png, tokens expected': [{ type: 'image', data: PNG, format: 'png', expectedTokens: 4 }, text(1, 2)],
  'jpeg, tokens expected': [{ type: 'image', data: JPEG, format: 'jpeg', expectedTokens: 1 }, text(1, 2)],
  dmel: [{ type: 'dmel', dmel: DMEL }, text(1, 2)],
  'empty text': [text(), text(1, 2)],
  'asset pointer': [{ type: 'image_asset_pointer', location: 'assets/one.png', format: 'png' }, text(1, 2)],
  'asset pointer, tokens expected': [
    { type: 'image_asset_pointer', location: 'assets/one.jpg', format: 'jpeg', expectedTokens: 3 },
    text(1, 2),
  ],
};
