import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { datumFromExample, datumFromTokensWeights, packDatums, reduceWeights } from '../../../src/chat/datum/index.js';
import type { ModelInputChunk } from '../../../src/wire/chunk.js';
import { prepareDatum, type Datum } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { TensorData } from '../../../src/wire/tensor.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

const text = (...tokens: number[]): ModelInputChunk => ({ type: 'encoded_text', tokens: Int32Array.from(tokens) });
const image = (expectedTokens: number): ModelInputChunk => ({
  type: 'image',
  data: Uint8Array.of(1),
  format: 'png',
  expectedTokens,
});
/** A mel spectrogram of so many frames: dtype, rank 2, extents. */
const audio = (frames: number): ModelInputChunk => ({ type: 'dmel', dmel: Uint8Array.of(0, 2, frames, 80) });

const values = (datum: Datum, name: string): number[] =>
  TensorData.from(datum.lossFnInputs[name]!).toArray() as number[];
const plain = (datum: Datum): object => ({
  input: datum.modelInput.chunks.map((chunk) => (chunk.type === 'encoded_text' ? [...chunk.tokens] : chunk.type)),
  targets: values(datum, 'target_tokens'),
  weights: values(datum, 'weights'),
});

describe('a datum of tokens and weights', () => {
  it('is shifted by one', () => {
    const datum = datumFromTokensWeights([10, 20, 30, 40, 50], [0, 0, 1, 1, 1], { reduction: 'none' });
    expect(plain(datum)).toEqual({ input: [[10, 20, 30, 40]], targets: [20, 30, 40, 50], weights: [0, 1, 1, 1] });
    expect(datum.lossFnInputs['target_tokens']).toMatchObject({ dtype: 'int64', shape: [4] });
    expect(datum.lossFnInputs['weights']).toMatchObject({ dtype: 'float32', shape: [4] });
  });

  it('is cut from the right', () => {
    const options = { maxLength: 4, reduction: 'none' } as const;
    const datum = datumFromTokensWeights([10, 20, 30, 40, 50, 60], [0, 1, 1, 1, 1, 1], options);
    expect(plain(datum)).toEqual({ input: [[10, 20, 30]], targets: [20, 30, 40], weights: [1, 1, 1] });
  });

  it('has weights that sum to 1, after the cut, unless told otherwise', () => {
    const tokens = [1, 2, 3, 4, 5];
    expect(values(datumFromTokensWeights(tokens, [0, 0, 1, 1, 1], { maxLength: 4 }), 'weights')).toEqual([0, 0.5, 0.5]);
    expect(values(datumFromTokensWeights(tokens, [0, 0, 1, 1, 1], { reduction: 'sum' }), 'weights')).toEqual([
      0, 1, 1, 1,
    ]);
    expect(values(datumFromTokensWeights(tokens, [1, 0, 0, 0, 0]), 'weights')).toEqual([0, 0, 0, 0]);
    expect([...reduceWeights([1, -1], 'mean')]).toEqual([1, -1]);
  });

  it('leaves what it was made of alone', () => {
    const tokens = Int32Array.of(1, 2, 3);
    const weights = Float32Array.of(0, 1, 1);
    const datum = datumFromTokensWeights(tokens, weights);
    (datum.lossFnInputs['weights'] as TensorData).data.fill(9);
    expect([tokens, weights]).toEqual([Int32Array.of(1, 2, 3), Float32Array.of(0, 1, 1)]);
  });

  it('needs two positions and as many weights', () => {
    expect(() => datumFromTokensWeights([1], [1])).toThrow(
      new ValidationError('an example needs at least two tokens to predict one, got 1'),
    );
    expect(() => datumFromTokensWeights([1, 2], [1])).toThrow(
      new ValidationError('2 positions need as many weights, got 1'),
    );
    expect(() => datumFromTokensWeights([1, 2], [1, 1], { maxLength: 1 })).toThrow(
      new RangeError('maxLength must be >= 2, got 1'),
    );
  });
});

describe('images and audio', () => {
  it('take their positions, with target 0', () => {
    const modelInput = new ModelInput([text(1, 2), image(3), audio(2), text(7, 8)]);
    const weights = [0, 1, 0, 0, 0, 0, 0, 1, 1];
    const datum = datumFromExample({ modelInput, weights }, { reduction: 'sum' });
    expect(plain(datum)).toEqual({
      input: [[1, 2], 'image', 'dmel', [7]],
      targets: [2, 0, 0, 0, 0, 0, 7, 8],
      weights: [1, 0, 0, 0, 0, 0, 1, 1],
    });
    expect(datum.modelInput.length).toBe(8);
  });

  it('stay whole or go, and do not stand last', () => {
    const modelInput = new ModelInput([text(1, 2), image(3), text(7, 8)]);
    const cut = (maxLength: number) =>
      plain(datumFromExample({ modelInput, weights: [1, 1, 1, 1, 1, 1, 1] }, { maxLength }));
    expect(cut(6)).toMatchObject({ input: [[1, 2], 'image'], targets: [2, 0, 0, 0, 7] });
    expect(cut(5)).toMatchObject({ input: [[1]], targets: [2] });
    expect(cut(4)).toMatchObject({ input: [[1]], targets: [2] });
  });

  it('alone make no example', () => {
    const modelInput = new ModelInput([image(3)]);
    expect(() => datumFromExample({ modelInput, weights: [1, 1, 1] })).toThrow(ValidationError);
  });
});

describe('packing', () => {
  const datum = (...tokens: number[]): Datum =>
    datumFromTokensWeights(
      tokens,
      tokens.map(() => 1),
    );

  it('joins what fits, each into the first that has room', () => {
    const packed = packDatums([datum(1, 2, 3), datum(4, 5, 6, 7, 8), datum(9, 10)], { maxLength: 5 });
    expect(packed.map(plain)).toEqual([
      { input: [[1, 2, 9]], targets: [2, 3, 10], weights: [0.5, 0.5, 1] },
      { input: [[4, 5, 6, 7]], targets: [5, 6, 7, 8], weights: [0.25, 0.25, 0.25, 0.25] },
    ]);
  });

  it('keeps every target and weight, within the length', () => {
    const tokens = fc.array(fc.nat({ max: 99 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(tokens, { maxLength: 12 }), fc.integer({ min: 1, max: 30 }), (rows, maxLength) => {
        const data = rows.map((row) => datum(...row));
        const packed = packDatums(data, { maxLength });
        packed.forEach((each, index) => prepareDatum(each, index));
        const sum = (all: readonly Datum[]) =>
          all.flatMap((each) => values(each, 'target_tokens')).sort((a, b) => a - b);
        expect(sum(packed)).toEqual(sum(data));
        const weights = packed.flatMap((each) => values(each, 'weights')).reduce((total, weight) => total + weight, 0);
        expect(weights).toBeCloseTo(rows.length, 4);
        for (const each of packed) {
          expect(
            each.modelInput.length <= maxLength || data.some((one) => one.modelInput.length === each.modelInput.length),
          ).toBe(true);
        }
      }),
    );
  });

  it('keeps a longer one alone, and rows of several columns together', () => {
    const long = datum(1, 2, 3, 4, 5, 6);
    expect(packDatums([long], { maxLength: 2 })).toEqual([long]);
    const wide = (token: number): Datum => ({
      modelInput: ModelInput.fromInts([token]),
      lossFnInputs: { target_tokens: [[token, 0]], weights: [[0.5, 0.5]] },
    });
    const [packed] = packDatums([wide(1), wide(2)], { maxLength: 4 });
    expect((packed!.lossFnInputs['target_tokens'] as TensorData).toArray()).toEqual([
      [1, 0],
      [2, 0],
    ]);
  });

  it('refuses what would come out wrong', () => {
    const sampled: Datum = {
      modelInput: ModelInput.fromInts([1]),
      lossFnInputs: { target_tokens: [2], logprobs: [-1] },
    };
    expect(() => packDatums([sampled], { maxLength: 9 })).toThrow(/a datum with logprobs cannot be packed/);
    const other: Datum = { modelInput: ModelInput.fromInts([1]), lossFnInputs: { target_tokens: [2] } };
    expect(() => packDatums([datum(1, 2), other], { maxLength: 9 })).toThrow(
      /the same tensors: target_tokens, weights/,
    );
    expect(() => packDatums([], { maxLength: 0 })).toThrow(RangeError);
  });
});
