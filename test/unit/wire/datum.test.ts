import { describe, expect, it } from 'vitest';
import { prepareDatum, type Datum, type ProvenanceSpan } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { TensorData } from '../../../src/wire/tensor.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

const datum = (lossFnInputs: Datum['lossFnInputs'], more: Partial<Datum> = {}): Datum => ({
  modelInput: ModelInput.fromInts([1, 2, 3]),
  lossFnInputs,
  ...more,
});
const prompt = (length: number, fields: Partial<ProvenanceSpan> = {}): ProvenanceSpan => ({
  type: 'prompt',
  sequenceId: 's',
  length,
  ...fields,
});

describe('a datum', () => {
  it('gets tensors of the dtype that belongs to their name', () => {
    const { lossFnInputs } = prepareDatum(datum({ target_tokens: [1, 2, 3], weights: [1, 0, 1], mine: [0.5] }), 0);
    expect(Object.entries(lossFnInputs).map(([name, { dtype, shape }]) => [name, dtype, shape])).toEqual([
      ['target_tokens', 'int64', [3]],
      ['weights', 'float32', [3]],
      ['mine', 'float32', [1]],
    ]);
  });

  it('may have soft targets: rows of candidates with weights', () => {
    const rows = [
      [1, 2],
      [3, 4],
      [5, 6],
    ];
    const { lossFnInputs } = prepareDatum(datum({ target_tokens: rows, weights: rows }), 0);
    expect(lossFnInputs['target_tokens']!.toArray()).toEqual(rows);
  });

  it('may lack targets, and may have an image of unknown length', () => {
    prepareDatum(datum({}), 0);
    const modelInput = new ModelInput([{ type: 'image', data: Uint8Array.of(1), format: 'png' }]);
    prepareDatum({ modelInput, lossFnInputs: { target_tokens: [1, 2, 3, 4], weights: [1, 1, 1, 1] } }, 0);
  });

  it.each(['weights', 'advantages', 'logprobs', 'sequence_ratio_mask'])('must have as many %s as targets', (name) => {
    expect(() => prepareDatum(datum({ target_tokens: [1, 2, 3], [name]: [1, 2] }), 4)).toThrow(
      new ValidationError(`data[4].lossFnInputs.${name} has 2 rows, target_tokens has 3`),
    );
  });

  it.each<[string, Datum['lossFnInputs'], string]>([
    ['a negative target', { target_tokens: [1, -1, 2] }, 'holds -1: token ids are integers from 0 to 2³¹ − 1'],
    [
      'a target of 2³¹',
      { target_tokens: [1, 2 ** 31, 2] },
      'holds 2147483648: token ids are integers from 0 to 2³¹ − 1',
    ],
    [
      'a fractional target in a tensor',
      { target_tokens: TensorData.from([1, 2.5, 3]) },
      'holds 2.5: token ids are integers from 0 to 2³¹ − 1',
    ],
    ['too many targets', { target_tokens: [1, 2, 3, 4] }, 'has 4 rows, but the input has 3 positions'],
  ])('must not have %s', (_, inputs, said) => {
    expect(() => prepareDatum(datum(inputs), 0)).toThrow(
      new ValidationError(`data[0].lossFnInputs.target_tokens ${said}`),
    );
  });

  it('says which tensor is ragged, and where', () => {
    expect(() => prepareDatum(datum({ weights: [[1], [2, 3], [4]] }), 7)).toThrow(
      new ValidationError(
        'data[7].lossFnInputs.weights: weights must be numbers or rows of equal length; ragged or mixed lists are not supported',
      ),
    );
  });
});

describe('provenance', () => {
  const spans = (input: readonly ProvenanceSpan[], targets: readonly ProvenanceSpan[]): Datum =>
    datum({ target_tokens: [1, 2, 3] }, { modelInputSpans: input, lossFnInputSpans: targets });

  it('covers the input and the targets', () => {
    prepareDatum(spans([prompt(1), prompt(2, { type: 'sampled' })], [prompt(3)]), 0);
    prepareDatum(spans([prompt(0), prompt(3)], [prompt(3, { offset: 9 })]), 0);
  });

  it.each<[string, Datum, string]>([
    [
      'half of the pair',
      datum({}, { modelInputSpans: [prompt(3)] }),
      'data[0]: provenance comes as a pair: give modelInputSpans and lossFnInputSpans, or neither',
    ],
    [
      'too short a cover of the input',
      spans([prompt(2)], [prompt(3)]),
      'data[0].modelInputSpans cover 2 positions, but the field has 3',
    ],
    [
      'too long a cover of the targets',
      spans([prompt(3)], [prompt(4)]),
      'data[0].lossFnInputSpans cover 4 positions, but the field has 3',
    ],
    [
      'another type',
      spans([prompt(3, { type: 'guess' as never })], [prompt(3)]),
      'data[0].modelInputSpans[0] needs type prompt or sampled, a sequenceId, offset ≥ 0 and length ≥ 0',
    ],
    [
      'no sequence',
      spans([prompt(3)], [prompt(1), prompt(2, { sequenceId: '' })]),
      'data[0].lossFnInputSpans[1] needs type prompt or sampled, a sequenceId, offset ≥ 0 and length ≥ 0',
    ],
    [
      'a negative offset',
      spans([prompt(3, { offset: -1 })], [prompt(3)]),
      'data[0].modelInputSpans[0] needs type prompt or sampled, a sequenceId, offset ≥ 0 and length ≥ 0',
    ],
  ])('is refused with %s', (_, value, said) => {
    expect(() => prepareDatum(value, 0)).toThrow(new ValidationError(said));
  });
});
