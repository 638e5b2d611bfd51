import { from, lastValueFrom, map, of, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { definePairLoss, simpo, weightedSft } from '../../src/losses/index.js';
import { trainPreferences } from '../../src/operators/training/trainPreferences.js';
import type { Trainable } from '../../src/operators/training/Trainable.js';
import type { ModelInput } from '../../src/wire/modelInput.js';
import { keepsContract, throwing } from './contract.js';
import { datum, fakeTrainer } from './fakeTrainer.js';
import { marbles } from './marbles.js';

const METRICS = { 'loss:sum': 0.6, 'custom/dpo_loss:mean': 0.6, 'custom/accuracy:mean': 0.75, clock: 3 };
const reference = { computeLogprobs: (prompt: ModelInput) => of(new Float32Array(prompt.length).fill(-1)) };
const pair = () => [datum(2, 1), datum(3, 1)];

const output = { lossFnOutputType: 'fake', lossFnOutputs: [], metrics: METRICS };
const atOnce: Trainable = {
  forwardBackward: () => of(output),
  forwardBackwardCustom: () => of(output),
  optimStep: () => of({}),
};

describe('trainPreferences', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(pair),
        trainPreferences(atOnce, { loss: simpo() }),
        map(({ index }) => index),
      ),
    readsForThree: 5,
    throwing: () => (source) =>
      source.pipe(map(pair), trainPreferences({ ...atOnce, optimStep: throwing }, { loss: simpo() })),
  });

  it('gives steps whose metrics have plain names', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, metrics: () => METRICS });
    const steps = await lastValueFrom(
      from([pair(), pair()]).pipe(trainPreferences(trainer, { reference, adam: { learningRate: 1e-3 } }), toArray()),
    );
    expect(steps.map(({ metrics }) => metrics)).toEqual(
      [0, 1].map(() => ({ 'loss:sum': 0.6, dpo_loss: 0.6, accuracy: 0.75, clock: 3 })),
    );
    expect(steps.map(({ loss }) => loss)).toEqual([0.6, 0.6]);
    expect(log).toEqual([0, 1].flatMap(() => ['forwardBackwardCustom 2 dpo', 'optimStep {"learningRate":0.001}']));
  });

  it(
    'keeps two further steps submitted, so that a forward pass goes out with the backward pass before it',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abcd|)', { a: pair(), b: pair(), c: pair(), d: pair() });
      const expected = '       ----s---s---s---(s|)';
      const seen = source.pipe(
        trainPreferences(trainer, { reference }),
        map(() => 's'),
      );
      m.expect(seen).toBeObservable(expected);
      m.scheduler.schedule(() => expect(log).toHaveLength(6), 3);
    }),
  );

  it('asks no reference where the loss takes none', async () => {
    const asked = { computeLogprobs: () => { throw new Error('asked'); } }; // prettier-ignore
    const { trainer } = fakeTrainer({ passMs: 0 });
    const steps = of(pair()).pipe(trainPreferences(trainer, { loss: simpo(), reference: asked }), toArray());
    expect(await lastValueFrom(steps)).toHaveLength(1);
  });

  it('refuses a loss of single datums, and one that lacks its reference, at the call', () => {
    const { trainer } = fakeTrainer();
    expect(() => trainPreferences(trainer, { loss: weightedSft() })).toThrow('weighted_sft is not a loss of pairs');
    expect(() => trainPreferences(trainer, {})).toThrow('the loss dpo needs a reference');
    const own = definePairLoss(({ chosen, rejected }) => rejected.logprobs.sum().sub(chosen.logprobs.sum()));
    expect(() => trainPreferences(trainer, { loss: own })).not.toThrow();
  });
});
