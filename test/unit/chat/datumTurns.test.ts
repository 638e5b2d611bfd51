import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { datumFromSequence, datumsFromTurns, type SampledTurn } from '../../../src/chat/datum/index.js';
import { prepareDatum, type Datum, type ProvenanceSpan } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import type { SampledSequence } from '../../../src/wire/sampling.js';
import { TensorData } from '../../../src/wire/tensor.js';

const sequence = (tokens: readonly number[], sequenceId?: string): SampledSequence => ({
  stopReason: 'stop',
  tokens: Int32Array.from(tokens),
  logprobs: Float32Array.from(tokens, (token) => -token),
  ...(sequenceId === undefined ? {} : { sequenceId }),
});
const turn = (prompt: readonly number[], tokens: readonly number[], sequenceId?: string): SampledTurn => ({
  prompt: ModelInput.fromInts(prompt),
  sequence: sequence(tokens, sequenceId),
});
const values = (datum: Datum, name: string): number[] =>
  TensorData.from(datum.lossFnInputs[name]!).toArray() as number[];

describe('a datum of a sampled sequence', () => {
  const datum = datumFromSequence(ModelInput.fromInts([1, 2, 3]), sequence([4, 5], 's1'), { advantage: 0.5 });

  it('has advantages and logprobs on what was sampled', () => {
    expect([...datum.modelInput.toInts()]).toEqual([1, 2, 3, 4]);
    expect(values(datum, 'target_tokens')).toEqual([2, 3, 4, 5]);
    expect(values(datum, 'logprobs')).toEqual([0, 0, -4, -5]);
    expect(values(datum, 'advantages')).toEqual([0, 0, 0.5, 0.5]);
    expect(datum.lossFnInputs).not.toHaveProperty('sequence_ratio_mask');
  });

  it('says where its tokens come from', () => {
    expect(datum.modelInputSpans).toEqual([
      { type: 'prompt', sequenceId: 's1', offset: 0, length: 3 },
      { type: 'sampled', sequenceId: 's1', offset: 0, length: 1 },
    ]);
    expect(datum.lossFnInputSpans).toEqual([
      { type: 'prompt', sequenceId: 's1', offset: 1, length: 2 },
      { type: 'sampled', sequenceId: 's1', offset: 0, length: 2 },
    ]);
  });

  it('does not say so where it does not know, or is told not to', () => {
    const prompt = ModelInput.fromInts([1]);
    expect(datumFromSequence(prompt, sequence([4, 5]))).not.toHaveProperty('modelInputSpans');
    expect(datumFromSequence(prompt, sequence([4, 5], 's1'), { provenance: false })).not.toHaveProperty(
      'lossFnInputSpans',
    );
  });

  it('needs logprobs, and advantages that fit', () => {
    const prompt = ModelInput.fromInts([1, 2]);
    const bare: SampledSequence = { stopReason: 'stop', tokens: Int32Array.of(3) };
    expect(() => datumFromSequence(prompt, bare)).toThrow(
      /a sampled sequence of 1 tokens needs as many logprobs, got none/,
    );
    expect(() => datumsFromTurns([{ prompt, sequence: sequence([3]), advantage: [1, 2] }])).toThrow(
      /needs as many advantages, got 2/,
    );
    expect(() => datumsFromTurns([], { maxLength: 1 })).toThrow(RangeError);
  });
});

describe('several turns', () => {
  it('share a datum while each prompt extends what was before', () => {
    const turns = [turn([1, 2], [3], 'a'), turn([1, 2, 3, 4], [5, 6], 'b'), turn([9, 9], [8], 'c')];
    const [first, second, ...rest] = datumsFromTurns(turns, { advantage: 1 });
    expect(rest).toEqual([]);
    expect([...first!.modelInput.toInts()]).toEqual([1, 2, 3, 4, 5]);
    expect(values(first!, 'advantages')).toEqual([0, 1, 0, 1, 1]);
    expect(first!.modelInputSpans).toEqual([
      { type: 'prompt', sequenceId: 'a', offset: 0, length: 2 },
      { type: 'sampled', sequenceId: 'a', offset: 0, length: 1 },
      { type: 'prompt', sequenceId: 'b', offset: 3, length: 1 },
      { type: 'sampled', sequenceId: 'b', offset: 0, length: 1 },
    ]);
    expect([...second!.modelInput.toInts()]).toEqual([9, 9]);
  });

  it('may have advantages of their own, token by token', () => {
    const turns = [turn([1], [2, 3]), { ...turn([1, 2, 3, 4], [5, 6]), advantage: [0.25, -0.25] }];
    const [datum] = datumsFromTurns(turns, { advantage: 1, sequenceRatioMask: true });
    expect(values(datum!, 'advantages')).toEqual([1, 1, 0, 0.25, -0.25]);
    expect(values(datum!, 'sequence_ratio_mask')).toEqual([1, 1, 0, 1, 1]);
  });

  it('extend across images, wherever text is cut', () => {
    const image = { type: 'image', data: Uint8Array.of(1), format: 'png', expectedTokens: 2 } as const;
    const text = (...tokens: number[]) => ({ type: 'encoded_text', tokens: Int32Array.from(tokens) }) as const;
    const first = { prompt: new ModelInput([text(1), image, text(2)]), sequence: sequence([3], 'a') };
    const second = {
      prompt: new ModelInput([text(1), image, text(2), text(3), text(4)]),
      sequence: sequence([5], 'b'),
    };
    const [datum, ...rest] = datumsFromTurns([first, second]);
    expect(rest).toEqual([]);
    expect(datum!.modelInput.length).toBe(6);
    const other = { ...image, data: Uint8Array.of(2) };
    const third = { prompt: new ModelInput([text(1), other, text(2, 3, 4)]), sequence: sequence([5], 'b') };
    expect(datumsFromTurns([first, third])).toHaveLength(2);
  });

  it('name the right tokens, whatever is cut off', () => {
    const tokens = fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 5 });
    const steps = fc.array(fc.record({ more: tokens, sampled: tokens, isNew: fc.boolean() }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(steps, fc.integer({ min: 2, max: 30 }), (all, maxLength) => {
        let soFar: number[] = [];
        const turns = all.map(({ more, sampled, isNew }, index) => {
          const prompt = [...(isNew ? [] : soFar), ...more];
          soFar = [...prompt, ...sampled];
          return turn(prompt, sampled, `s${index}`);
        });
        const source = ({ type, sequenceId, offset = 0, length }: ProvenanceSpan): number[] => {
          const { prompt, sequence: from } = turns[Number(sequenceId.slice(1))]!;
          return [...(type === 'prompt' ? prompt.toInts() : from.tokens)].slice(offset, offset + length);
        };
        datumsFromTurns(turns, { maxLength }).forEach((datum, index) => {
          prepareDatum(datum, index);
          expect(datum.modelInputSpans!.flatMap(source)).toEqual([...datum.modelInput.toInts()]);
          expect(datum.lossFnInputSpans!.flatMap(source)).toEqual(values(datum, 'target_tokens'));
        });
      }),
    );
  });

  it('may be long', () => {
    const long = Array.from({ length: 200_000 }, (_, index) => index % 50);
    const datum = datumFromSequence(ModelInput.fromInts(long), sequence(long, 's'));
    expect(datum.modelInput.length).toBe(399_999);
  });
});
