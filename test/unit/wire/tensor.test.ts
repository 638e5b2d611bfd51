import { describe, expect, it } from 'vitest';
import { TensorData, TensorDataCodec, namedTensor, type TensorInput } from '../../../src/wire/tensor.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';
import { expectDecoded, expectRefused } from './decoding.js';

describe('a tensor', () => {
  it.each<[string, TensorInput, 'int64' | 'float32', ArrayLike<number>, number[]]>([
    ['whole numbers', [1, 2], 'int64', Int32Array.of(1, 2), [2]],
    ['a fraction among them', [1, 2.5], 'float32', Float32Array.of(1, 2.5), [2]],
    ['large whole numbers', [2 ** 40], 'int64', Float64Array.of(2 ** 40), [1]],
    [
      'rows',
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
      'int64',
      Int32Array.of(1, 2, 3, 4, 5, 6),
      [3, 2],
    ],
    ['rows without columns', [[], []], 'int64', new Int32Array(), [2, 0]],
    ['nothing', [], 'int64', new Int32Array(), [0]],
    ['integers, then a fraction', [1, 2 ** 40, 0.5], 'float32', Float32Array.of(1, 2 ** 40, 0.5), [3]],
    ['an integer of more than 32 bits', [1, 2 ** 40], 'int64', Float64Array.of(1, 2 ** 40), [2]],
    ['a Float32Array', Float32Array.of(1), 'float32', Float32Array.of(1), [1]],
    ['a Float64Array', Float64Array.of(0.5), 'float32', Float32Array.of(0.5), [1]],
    ['an Int32Array', Int32Array.of(-1), 'int64', Int32Array.of(-1), [1]],
    ['a Uint8Array', Uint8Array.of(255), 'int64', Int32Array.of(255), [1]],
    ['a Uint32Array', Uint32Array.of(2 ** 32 - 1), 'int64', Float64Array.of(2 ** 32 - 1), [1]],
    ['a BigInt64Array', BigInt64Array.of(3n), 'int64', Int32Array.of(3), [1]],
  ])('of %s has the dtype and shape that follow', (_, input, dtype, data, shape) => {
    const tensor = TensorData.from(input);
    expect(tensor).toMatchObject({ dtype, shape });
    expect(tensor.data).toStrictEqual(data);
  });

  it('of a wanted dtype', () => {
    expect(TensorData.from([1, 2], 'float32').data).toStrictEqual(Float32Array.of(1, 2));
    expect(TensorData.from(Int32Array.of(1), 'float32').data).toStrictEqual(Float32Array.of(1));
    expect(TensorData.from(Float64Array.of(1, 2), 'int64').data).toStrictEqual(Int32Array.of(1, 2));
    expect(TensorData.from(BigInt64Array.of(1n), 'float32').data).toStrictEqual(Float32Array.of(1));
  });

  it('keeps the array it is made of', () => {
    const floats = Float32Array.of(1, 2);
    expect(TensorData.from(floats).data).toBe(floats);
    const tensor = TensorData.from(floats);
    expect(TensorData.from(tensor)).toBe(tensor);
  });

  const RAGGED = 'tensor must be numbers or rows of equal length; ragged or mixed lists are not supported';
  it.each<[string, unknown, string]>([
    ['rows of different lengths', [[1, 2], [3]], RAGGED],
    ['a number among rows', [[1], 2], RAGGED],
    ['a row among numbers', [1, [2]], RAGGED],
    ['rows of rows', [[[1]]], RAGGED],
    ['text', ['a'], RAGGED],
    ['null', [null], RAGGED],
    ['a list with a hole', Object.assign(new Array<number>(3), { 0: 1, 2: 3 }), RAGGED],
    ['text behind a fraction', [0.5, 'a'], RAGGED],
    ['no list at all', 7, 'tensor must be numbers, rows of numbers or a typed array'],
  ])('is not made of %s', (_, input, said) => {
    expect(() => TensorData.from(input as TensorInput)).toThrow(new ValidationError(said));
  });

  it('of int64 is not made of fractions or NaN', () => {
    for (const input of [[1.5], [NaN], Float32Array.of(0.5), [2 ** 60]])
      expect(() => TensorData.from(input, 'int64', 'ids')).toThrow(
        new ValidationError('ids must hold integers (dtype int64)'),
      );
  });

  it('must have as many values as its shape', () => {
    const make = () => new TensorData({ dtype: 'float32', data: new Float32Array(5), shape: [2, 3] });
    expect(make).toThrow(new ValidationError('tensor of shape [2, 3] needs 6 values, got 5'));
  });
});

describe('a sparse tensor', () => {
  const rows = [
    [0, 0, 0, 7],
    [0, 0, 0, 0],
    [5, 0, 6, 0],
  ];
  const sparse = TensorData.from(rows, 'float32').toSparse();

  it('lists what is not zero, row by row', () => {
    expect(sparse.data).toStrictEqual(Float32Array.of(7, 5, 6));
    expect(sparse.sparse).toStrictEqual({ crowIndices: Int32Array.of(0, 1, 1, 3), colIndices: Int32Array.of(3, 0, 2) });
    expect(sparse.shape).toEqual([3, 4]);
  });

  it('becomes dense again, with another value for the rest where wanted', () => {
    expect(sparse.toArray()).toEqual(rows);
    expect(sparse.toDense(-1).toArray()).toEqual([
      [-1, -1, -1, 7],
      [-1, -1, -1, -1],
      [5, -1, 6, -1],
    ]);
  });

  // rows + 1 + 2 · listed must be less than rows · columns
  it.each([
    ['is smaller', [[1, 0, 0, 0, 0]], true],
    ['is as large', [[1, 0, 0, 0]], false],
    ['is larger', [[1, 1]], false],
  ])('is made where it %s', (_, input, expected) => {
    expect(TensorData.from(input).toSparse().sparse !== undefined).toBe(expected);
  });

  it('is made of targets and weights only, and only of rows', () => {
    const wide = [[1, 0, 0, 0, 0, 0]];
    expect(namedTensor('target_tokens', wide).sparse).toBeDefined();
    expect(namedTensor('weights', wide).sparse).toBeDefined();
    expect(namedTensor('advantages', wide).sparse).toBeUndefined();
    expect(namedTensor('weights', [0, 0, 0, 0, 0]).sparse).toBeUndefined();
  });

  it.each<[string, number[], number[], number, number[], string]>([
    ['no rows', [0, 1], [0], 1, [4], 'a sparse tensor must be 2-D and have a shape'],
    ['too few offsets', [0, 1], [0], 1, [2, 4], 'sparse tensor with 2 rows needs 3 row offsets, got 2'],
    ['more values than columns', [0, 2], [0], 2, [1, 4], 'sparse tensor has 2 values but 1 column indices'],
    [
      'offsets that fall',
      [0, 2, 1, 2],
      [0, 1],
      2,
      [3, 4],
      'sparse row offsets must rise from 0 to the number of values',
    ],
    ['offsets that start late', [1, 1], [0], 1, [1, 4], 'sparse row offsets must rise from 0 to the number of values'],
    ['a column outside', [0, 1], [4], 1, [1, 4], 'sparse column indices must be in 0 … 3'],
  ])('must not have %s', (_, crow, col, count, shape, said) => {
    const make = () =>
      new TensorData({
        dtype: 'float32',
        data: new Float32Array(count),
        shape,
        sparse: { crowIndices: Int32Array.from(crow), colIndices: Int32Array.from(col) },
      });
    expect(make).toThrow(new ValidationError(said));
  });
});

describe('a named tensor', () => {
  it.each([
    ['target_tokens', 'int64'],
    ['weights', 'float32'],
    ['advantages', 'float32'],
    ['logprobs', 'float32'],
    ['clip_low_threshold', 'float32'],
    ['clip_high_threshold', 'float32'],
    ['sequence_ratio_mask', 'float32'],
    ['anything_else', 'int64'],
  ])('%s of whole numbers is %s', (name, dtype) => {
    expect(namedTensor(name, [1, 2]).dtype).toBe(dtype);
  });

  it('is left as it is where it is a tensor already', () => {
    const tensor = TensorData.from([1.5]);
    expect(namedTensor('target_tokens', tensor)).toBe(tensor);
  });
});

describe('TensorData as JSON', () => {
  it('decodes', () => {
    expectDecoded(TensorDataCodec, { data: [1, 2], dtype: 'int64' }, TensorData.from([1, 2]));
    expectDecoded(
      TensorDataCodec,
      { data: [1, 2], dtype: 'float32', shape: [2, 1] },
      TensorData.from([[1], [2]], 'float32'),
    );
    const sparse = TensorData.from([[0, 0, 0, 0, 9]]).toSparse();
    expectDecoded(TensorDataCodec, TensorDataCodec.encode(sparse), sparse);
  });

  it('is refused with its mistake', () => {
    expectRefused(TensorDataCodec, { data: [1], dtype: 'int8' }, "dtype: expected 'int64' | 'float32'");
    expectRefused(
      TensorDataCodec,
      { data: [1], dtype: 'int64', shape: [2] },
      'tensor of shape [2] needs 2 values, got 1',
    );
    expectRefused(TensorDataCodec, { data: [0.5], dtype: 'int64' }, 'tensor must hold integers (dtype int64)');
    expectRefused(TensorDataCodec, { data: ['a'], dtype: 'int64' }, 'data.0: expected number');
    expectRefused(TensorDataCodec, { data: [1], dtype: 'int64', device: 'cuda' }, 'device: unknown key');
  });

  it('encodes with its shape, and its indices where it is sparse', () => {
    expect(TensorDataCodec.encode(TensorData.from([1, 2]))).toStrictEqual({ data: [1, 2], dtype: 'int64', shape: [2] });
    expect(TensorDataCodec.encode(TensorData.from([[0, 0, 0, 0, 9]]).toSparse())).toStrictEqual({
      data: [9],
      dtype: 'int64',
      shape: [1, 5],
      sparse_crow_indices: [0, 1],
      sparse_col_indices: [4],
    });
  });
});
