import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bitsPerByte, datumFromExample, datumsFromTurns, meanNll } from '../../src/chat/datum/index.js';
import { getLr, loraParameterCount, MODEL_FACTS } from '../../src/chat/models/index.js';
import { ByteTokenizer } from '../../src/chat/tokenizer/index.js';
import type { ModelInputChunk } from '../../src/wire/chunk.js';
import { prepareDatum, type Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { TensorData } from '../../src/wire/tensor.js';

/** A run of tokens, or an image of so many. */
type Part = number[] | number;

/** Recorded by datum_golden.py. */
const recorded = JSON.parse(readFileSync(new URL('recorded/datums.json', import.meta.url), 'utf8')) as {
  supervised: {
    chunks: Part[];
    weights: number[];
    max_length: number | null;
    reduction: 'none' | 'mean';
    input: Part[];
    targets: number[];
    reduced: number[];
  }[];
  turns: {
    turns: { prompt: number[]; tokens: number[]; logprobs: number[] }[];
    advantage: number;
    data: { input: number[]; target_tokens: number[]; logprobs: number[]; advantages: number[]; mask: number[] }[];
  }[];
  metrics: {
    data: { targets: number[]; weights: number[]; logprobs: number[] }[];
    nll: number | null;
    bpb: number | null;
  }[];
  models: Record<string, { lr: number | null; hidden: number; parameters: number; attention: number }>;
};

const chunkOf = (part: Part): ModelInputChunk =>
  typeof part === 'number'
    ? { type: 'image', data: Uint8Array.of(120), format: 'png', expectedTokens: part }
    : { type: 'encoded_text', tokens: Int32Array.from(part) };
const partOf = (chunk: ModelInputChunk): Part =>
  chunk.type === 'encoded_text' ? [...chunk.tokens] : ((chunk as { expectedTokens?: number }).expectedTokens ?? 0);
const values = (datum: Datum, name: string): number[] =>
  TensorData.from(datum.lossFnInputs[name]!).toArray() as number[];

describe('as in the public cookbook', () => {
  it('supervised examples become datums', () => {
    expect(recorded.supervised.length).toBeGreaterThan(100);
    for (const { chunks, weights, max_length, reduction, ...expected } of recorded.supervised) {
      const modelInput = new ModelInput(chunks.map(chunkOf));
      const options = max_length === null ? { reduction } : { reduction, maxLength: max_length };
      const datum = datumFromExample({ modelInput, weights }, options);
      expect(() => prepareDatum(datum, 0)).not.toThrow();
      expect({
        input: datum.modelInput.chunks.map(partOf),
        targets: values(datum, 'target_tokens'),
        reduced: values(datum, 'weights'),
      }).toEqual({ ...expected, reduced: expected.reduced.map(Math.fround) });
    }
  });

  it('sampled turns become datums', () => {
    expect(recorded.turns.some(({ turns, data }) => turns.length > 2 && data.length === 1)).toBe(true);
    for (const { turns, advantage, data } of recorded.turns) {
      const sampled = turns.map(({ prompt, tokens, logprobs }, index) => ({
        prompt: ModelInput.fromInts(prompt),
        sequence: {
          stopReason: 'stop' as const,
          tokens: Int32Array.from(tokens),
          logprobs: Float32Array.from(logprobs),
          sequenceId: `sequence-${index}`,
        },
      }));
      const made = datumsFromTurns(sampled, { advantage, sequenceRatioMask: true });
      made.forEach((datum, index) => expect(() => prepareDatum(datum, index)).not.toThrow());
      expect(
        made.map((datum) => ({
          input: [...datum.modelInput.toInts()],
          target_tokens: values(datum, 'target_tokens'),
          logprobs: values(datum, 'logprobs'),
          advantages: values(datum, 'advantages'),
          mask: values(datum, 'sequence_ratio_mask'),
        })),
      ).toEqual(
        data.map(({ logprobs, advantages, ...rest }) => ({
          ...rest,
          logprobs: logprobs.map(Math.fround),
          advantages: advantages.map(Math.fround),
        })),
      );
    }
  });

  it('batches have their likelihood and bits a byte', () => {
    for (const { data, nll, bpb } of recorded.metrics) {
      const datums = data.map(({ targets, weights }) => ({
        modelInput: ModelInput.fromInts(targets),
        lossFnInputs: { target_tokens: targets, weights },
      }));
      const outputs = data.map(({ logprobs }) => ({ logprobs: TensorData.from(logprobs, 'float32') }));
      const round = (value: number): number | null => (Number.isNaN(value) ? null : Number(value.toPrecision(5)));
      expect([meanNll(datums, outputs), bitsPerByte(datums, outputs, new ByteTokenizer())].map(round)).toEqual(
        [nll ?? NaN, bpb ?? NaN].map(round),
      );
    }
  });

  it('models have their facts', () => {
    expect(Object.keys(MODEL_FACTS).sort()).toEqual(Object.keys(recorded.models).sort());
    for (const [model, { lr, hidden, parameters, attention }] of Object.entries(recorded.models)) {
      expect(MODEL_FACTS[model]!.hiddenSize).toBe(hidden);
      expect(loraParameterCount(model)).toBe(parameters);
      expect(loraParameterCount(model, { rank: 8, trainMlp: false, trainUnembed: false })).toBe(attention);
      if (lr === null) expect(() => getLr(model)).toThrow(RangeError);
      else expect(getLr(model)).toBeCloseTo(lr, 12);
    }
  });
});
