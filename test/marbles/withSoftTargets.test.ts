import { lastValueFrom, map, NEVER, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { SampleOptions } from '../../src/client/SamplingClient.js';
import type { MarkedBatch } from '../../src/operators/training/trainingBatch.js';
import { withSoftTargets } from '../../src/operators/data/withSoftTargets.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import type { SampleResponse } from '../../src/wire/sampling.js';
import type { TensorData } from '../../src/wire/tensor.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

/** A datum over the tokens 1 to n + 1, trained on from its second target on. */
const datum = (length: number): Datum => ({
  modelInput: ModelInput.fromInts(Array.from({ length }, (_, place) => place + 1)),
  lossFnInputs: {
    target_tokens: Array.from({ length }, (_, place) => place + 2),
    weights: Array.from({ length }, (_, place) => (place === 0 ? 0 : 1)),
  },
});
/** Of token t it thinks: t with ½, t + 100 with ¼. */
const answer = ({ prompt, topkPromptLogprobs: k = 0 }: SampleOptions): SampleResponse => {
  const tokens = [...prompt.toInts()];
  return {
    sequences: [],
    promptCacheHitTokens: 0,
    topkPromptLogprobs: {
      tokenIds: Int32Array.from(tokens.flatMap((token) => [token, token + 100].slice(0, k))),
      logprobs: Float32Array.from(tokens.flatMap(() => [Math.log(0.5), Math.log(0.25)].slice(0, k))),
      k,
      length: tokens.length,
    },
  };
};
const teacher = { sample: (options: SampleOptions) => of(answer(options)) };
const slow = { sample: (options: SampleOptions) => timer(options.prompt.length).pipe(map(() => answer(options))) };
const rowsOf = ({ data }: MarkedBatch, name: string) => (data[0]!.lossFnInputs[name] as TensorData).toArray();

describe('withSoftTargets', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => [datum(2)]),
        withSoftTargets(teacher, { topK: 1 }),
        map(({ data }) => data.length),
      ),
    readsForThree: 4,
    throwing: () => (source) =>
      source.pipe(
        map(() => [datum(2)]),
        withSoftTargets({ sample: throwing }, { topK: 1 }),
      ),
  });

  it("has the teacher's tokens and probabilities where the datum has weights", async () => {
    const made = await lastValueFrom(of([datum(3)]).pipe(withSoftTargets(teacher, { topK: 2 })));
    expect(rowsOf(made, 'target_tokens')).toEqual([
      [0, 0],
      [3, 103],
      [4, 104],
    ]);
    expect(rowsOf(made, 'weights')).toEqual([
      [0, 0],
      [0.5, 0.25],
      [0.5, 0.25],
    ]);
  });

  it('lets the teacher read more before it, aligned at the end', async () => {
    const seen: number[][] = [];
    const told = { sample: (options: SampleOptions) => (seen.push([...options.prompt.toInts()]), of(answer(options))) };
    const made = await lastValueFrom(
      of([datum(2)]).pipe(
        withSoftTargets(told, { topK: 1, teacherReads: (whole) => ModelInput.fromInts([9, 9, 9, ...whole.toInts()]) }),
      ),
    );
    expect(seen).toEqual([[9, 9, 9, 1, 2, 3]]);
    expect(rowsOf(made, 'target_tokens')).toEqual([[0], [3]]);
  });

  it(
    'asks ahead, and emits in order',
    marbles((m) => {
      const source = m.cold('  (abc|)', { a: [datum(3)], b: [datum(1)], c: [datum(5)] });
      const expected = '       ----(ab)--(c|)';
      const places = source.pipe(
        withSoftTargets(slow, { topK: 1 }),
        map(({ position }) => position),
      );
      m.expect(places).toBeObservable(expected, { a: 0, b: 1, c: 2 });
    }),
  );

  it(
    'passes an error of the teacher in its turn',
    marbles((m) => {
      const failing = {
        sample: (options: SampleOptions) =>
          options.prompt.length === 2 ? throwError(() => new Error('gone')) : slow.sample(options),
      };
      const source = m.cold('  (ab|)', { a: [datum(3)], b: [datum(1)] });
      const expected = '       ----(a#)';
      const result = source.pipe(
        withSoftTargets(failing, { topK: 1 }),
        map(({ position }) => position),
      );
      m.expect(result).toBeObservable(expected, { a: 0 }, new Error('gone'));
    }),
  );

  it('cancels what it asked for when unsubscribed', () => {
    let cancelled = 0;
    const asked = { sample: () => Object.assign(NEVER, { cancel: () => cancelled++ }) };
    of([datum(1), datum(2)])
      .pipe(withSoftTargets(asked, { topK: 1 }))
      .subscribe()
      .unsubscribe();
    expect(cancelled).toBe(2);
  });

  it('refuses options, data and answers that do not fit', async () => {
    expect(() => withSoftTargets(teacher, { topK: 0 })).toThrow('topK');
    expect(() => withSoftTargets(teacher, { topK: 1, ahead: -1 })).toThrow('ahead');
    const bare: Datum = { ...datum(2), lossFnInputs: { target_tokens: [1, 2] } };
    await expect(lastValueFrom(of([bare]).pipe(withSoftTargets(teacher, { topK: 1 })))).rejects.toThrow('one weight');
    const none = { sample: () => of({ sequences: [], promptCacheHitTokens: 0 }) };
    await expect(lastValueFrom(of([datum(2)]).pipe(withSoftTargets(none, { topK: 1 })))).rejects.toThrow('no top-k');
    const short = withSoftTargets(teacher, { topK: 1, teacherReads: () => ModelInput.fromInts([1]) });
    await expect(lastValueFrom(of([datum(4)]).pipe(short))).rejects.toThrow('shorter than what datum 0 trains on');
  });
});
