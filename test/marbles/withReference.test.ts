import { lastValueFrom, map, NEVER, of, throwError, timer, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { withReference } from '../../src/operators/data/withReference.js';
import type { MarkedBatch } from '../../src/operators/training/trainingBatch.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import type { TensorData } from '../../src/wire/tensor.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

/** A datum over the tokens 1 to n + 1. */
const datum = (length: number, inputs: Datum['lossFnInputs'] = {}): Datum => ({
  modelInput: ModelInput.fromInts(Array.from({ length }, (_, place) => place + 1)),
  lossFnInputs: { target_tokens: Array.from({ length }, (_, place) => place + 2), ...inputs },
});
/** Finds token t as likely as −t, and needs as many milliseconds as there are tokens. */
const reference = (delayed = true) => ({
  computeLogprobs: (prompt: ModelInput) => {
    const logprobs = Float32Array.from(prompt.toInts(), (token, place) => (place === 0 ? NaN : -token));
    return delayed ? timer(prompt.length).pipe(map(() => logprobs)) : of(logprobs);
  },
});
const added = ({ data }: MarkedBatch) =>
  data.map(({ lossFnInputs }) => [...(lossFnInputs['reference_logprobs'] as TensorData).data]);

describe('withReference', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => [datum(1)]),
        withReference(reference(false)),
        map(({ data }) => data.length),
      ),
    readsForThree: 4,
    throwing: () => (source) =>
      source.pipe(
        map(() => [datum(1)]),
        withReference({ computeLogprobs: throwing }),
      ),
  });

  it('adds the logprobs of the targets, the last one included', async () => {
    const [made] = await lastValueFrom(of([datum(2), datum(3)]).pipe(withReference(reference(false)), toArray()));
    expect(added(made!)).toEqual([
      [-2, -3],
      [-2, -3, -4],
    ]);
  });

  it(
    'asks ahead, and emits in order',
    marbles((m) => {
      const source = m.cold('  (abc|)', { a: [datum(3)], b: [datum(1)], c: [datum(5)] });
      // a takes 4, b 2 beside it; c is asked about once a is through, and takes 6.
      const expected = '       ----(ab)--(c|)';
      const letters = source.pipe(
        withReference(reference(), { ahead: 1 }),
        map(({ data, position }) => `${position} ${data[0]!.modelInput.length}`),
      );
      m.expect(letters).toBeObservable(expected, { a: '0 3', b: '1 1', c: '2 5' });
    }),
  );

  it('keeps marks, places, and logprobs that are there already', async () => {
    const mark = () => undefined;
    const kept = datum(1, { reference_logprobs: [-0.5] });
    const batch: MarkedBatch = { data: [kept, datum(1)], position: 7, marks: [mark] };
    const made = await lastValueFrom(of(batch).pipe(withReference(reference(false))));
    expect(made).toMatchObject({ position: 7, marks: [mark] });
    expect(made.data[0]).toBe(kept);
  });

  it(
    'passes an error of the reference in its turn',
    marbles((m) => {
      const failing = {
        computeLogprobs: (prompt: ModelInput) =>
          prompt.length === 2 ? throwError(() => new Error('gone')) : reference().computeLogprobs(prompt),
      };
      const source = m.cold('  (ab|)', { a: [datum(3)], b: [datum(1)] });
      const expected = '       ----(a#)';
      const result = source.pipe(
        withReference(failing),
        map(({ position }) => position),
      );
      m.expect(result).toBeObservable(expected, { a: 0 }, new Error('gone'));
    }),
  );

  it('cancels what it asked for when unsubscribed', () => {
    let cancelled = 0;
    const asked = { computeLogprobs: () => Object.assign(NEVER, { cancel: () => cancelled++ }) };
    of([datum(1), datum(2)])
      .pipe(withReference(asked))
      .subscribe()
      .unsubscribe();
    expect(cancelled).toBe(2);
  });

  it('refuses data it cannot ask about, and an answer of the wrong length', async () => {
    const soft: Datum = { ...datum(1), lossFnInputs: { target_tokens: [[1, 2]] } };
    await expect(lastValueFrom(of([soft]).pipe(withReference(reference(false))))).rejects.toThrow(
      'datum 0 needs one target',
    );
    const short = { computeLogprobs: () => of(Float32Array.of(NaN)) };
    await expect(lastValueFrom(of([datum(2)]).pipe(withReference(short)))).rejects.toThrow(
      'gave 1 logprobs for the 3 tokens',
    );
    expect(() => withReference(reference(), { ahead: -1 })).toThrow(RangeError);
  });
});
