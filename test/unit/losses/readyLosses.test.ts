import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  clippedPolicyGradient,
  dpo,
  evaluateLoss,
  klToReference,
  orpo,
  simpo,
  type TracedLoss,
} from '../../../src/losses/index.js';
import type { ProgramInput } from '../../../src/losses/graph/program.js';
import type { CustomLossGraph } from '../../../src/wire/customLoss.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { type GivenInput, inputsFor, LOSSES } from './readyLosses.js';
import { randomLoss, seeded } from './randomLoss.js';

interface Recorded {
  readonly name: string;
  readonly values?: readonly GivenInput[];
  readonly graph?: CustomLossGraph;
  readonly loss: number;
  readonly gradients: readonly (readonly number[])[];
  readonly metrics: Readonly<Record<string, number>>;
}

// Recorded from PyTorch's autograd by test/parity/record_traced_losses.py, which runs these very graphs.
const { cases } = JSON.parse(
  readFileSync(new URL('../../parity/recorded/traced-losses.json', import.meta.url), 'utf8'),
) as { cases: readonly Recorded[] };

const toInput = ({ shape, data }: GivenInput): ProgramInput => ({ shape, data: Float64Array.from(data) });
type Held = Parameters<TracedLoss['program']['run']>[1];
const run = (loss: TracedLoss, given: readonly GivenInput[], held?: Held) => loss.program.run(given.map(toInput), held);

/** The largest difference between derivatives and central differences, relative to the larger of them or 1. Detached values do not move. */
function worst(loss: TracedLoss, given: readonly GivenInput[]): number {
  const held: Held = new Map();
  const { gradients } = run(loss, given, held);
  let most = 0;
  loss.program.derivedBy.forEach((name, side) => {
    const input = loss.inputs.findIndex((each) => each.name === name);
    given[input]!.data.forEach((value, place) => {
      const at = (moved: number) =>
        run(
          loss,
          given.map((each, index) => (index === input ? { ...each, data: each.data.with(place, moved) } : each)),
          held,
        ).loss;
      const step = 1e-6;
      const difference = (at(value + step) - at(value - step)) / (2 * step);
      const derivative = gradients[side]![place]!;
      most = Math.max(most, Math.abs(difference - derivative) / Math.max(1, Math.abs(derivative)));
    });
  });
  return most;
}

describe('ready losses', () => {
  it('are all recorded', () => expect(cases.map(({ name }) => name)).toEqual(Object.keys(LOSSES)));

  it.each(cases)('$name: the value, derivatives and metrics of PyTorch on the same graph', (recorded) => {
    const loss = LOSSES[recorded.name]!;
    if (recorded.graph !== undefined) expect(loss.graph).toEqual(recorded.graph);
    const result = run(loss, recorded.values ?? inputsFor(recorded.name, loss));
    expect(result.loss).toBeCloseTo(recorded.loss, 10);
    expect(result.gradients).toHaveLength(recorded.gradients.length);
    recorded.gradients.forEach((expected, side) =>
      expected.forEach((value, place) => expect(result.gradients[side]![place]).toBeCloseTo(value, 9)),
    );
    for (const [key, value] of Object.entries(recorded.metrics)) expect(result.metrics[key]).toBeCloseTo(value, 9);
  });

  // Random losses may have a kink where their numbers lie, those with ties on purpose; the property below goes around those.
  const plain = Object.entries(LOSSES).filter(([name]) => !/^(random|tie)/.test(name));
  it.each(plain)('%s: derivatives equal finite differences', (name, loss) => {
    expect(worst(loss, inputsFor(name, loss))).toBeLessThan(1e-6);
  });
});

describe('random losses', () => {
  it('have derivatives that equal finite differences', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1_000_000), { minLength: 1, maxLength: 12 }),
        fc.nat(1_000_000),
        fc.integer({ min: 1, max: 6 }),
        (choices, seed, length) => {
          const loss = randomLoss(choices);
          const random = seeded(seed);
          const given = loss.inputs.map(({ name }) => ({
            shape: [length],
            data: Array.from({ length }, () => (name === 'logprobs' ? -0.05 - 3 * random() : 2 * random() - 1)),
          }));
          // Where two values are nearly equal the larger one changes within the step: such a point tells nothing.
          const [near, nearer] = [worst(loss, given), worst(loss, shifted(given))];
          expect(Math.min(near, nearer)).toBeLessThan(1e-5);
        },
      ),
      { numRuns: 150, seed: 42 },
    );
  });

  const shifted = (given: readonly GivenInput[]): GivenInput[] =>
    given.map(({ shape, data }, input) => ({
      shape,
      data: data.map((value, place) => value - 0.0137 * (1 + input + place)),
    }));
});

describe('preference losses', () => {
  const side = (length: number, reference: number) => ({
    modelInput: ModelInput.fromInts(Array.from({ length }, () => 1)),
    lossFnInputs: {
      target_tokens: Array.from({ length }, () => 2),
      weights: Array.from({ length }, (_, place) => (place === 0 ? 0 : 1)),
      reference_logprobs: Array.from({ length }, () => reference - 0.5),
    },
  });

  it('dpo is log 2 where the model is the reference, and reports what users of other libraries know', () => {
    const data = [side(3, -1), side(4, -1), side(2, -1), side(3, -1)];
    const same = data.map(({ lossFnInputs }) => lossFnInputs.reference_logprobs);
    const { loss, metrics } = evaluateLoss(dpo({ beta: 0.1 }), data, same);
    expect(loss).toBeCloseTo(Math.LN2, 12);
    expect(metrics).toEqual({
      'custom/dpo_loss:mean': expect.closeTo(Math.LN2, 12) as number,
      'custom/accuracy:mean': 0,
      'custom/margin:mean': 0,
      'custom/chosen_reward:mean': 0,
      'custom/rejected_reward:mean': 0,
    });
    const better = same.map((row, index) => row.map((value) => value + (index % 2 === 0 ? 0.25 : -0.25)));
    const after = evaluateLoss(dpo({ beta: 0.1 }), data, better);
    expect(after.loss).toBeLessThan(Math.LN2);
    expect(after.metrics['custom/accuracy:mean']).toBe(1);
    // 2 and 1 tokens of the chosen answers, 3 and 2 of the rejected ones, a quarter each, times β.
    expect(after.metrics['custom/chosen_reward:mean']).toBeCloseTo((0.1 * 0.25 * (2 + 1)) / 2, 12);
    expect(after.metrics['custom/rejected_reward:mean']).toBeCloseTo((-0.1 * 0.25 * (3 + 2)) / 2, 12);
  });

  it('gives no gradient to the prompt', () => {
    const { gradients } = evaluateLoss(dpo(), [side(3, -1), side(3, -2)], [[-1, -1, -1], [-1, -2, -1]]); // prettier-ignore
    expect(gradients.map(([first]) => first === 0)).toEqual([true, true]);
  });

  it.each([
    ['beta', () => dpo({ beta: 0 })],
    ['labelSmoothing', () => dpo({ labelSmoothing: 0.5 })],
    ['gamma', () => simpo({ gamma: -1 })],
    ['lambda', () => orpo({ lambda: NaN })],
    ['low', () => clippedPolicyGradient({ low: 2 })],
    ['coefficient', () => klToReference({ coefficient: -1 })],
  ])('refuses a %s out of range', (option, make) => {
    expect(make).toThrow(RangeError);
    expect(make).toThrow(option);
  });
});
