import {
  addLosses,
  clippedPolicyGradient,
  dpo,
  entropyBonus,
  ipo,
  klRegularized,
  klToReference,
  l2ToReference,
  orpo,
  policyGradient,
  simpo,
  softTargetsForward,
  softTargetsReverse,
  type TracedLoss,
  weightedSft,
} from '../../../src/losses/index.js';
import { randomLoss, seeded } from './randomLoss.js';

/** Made of operations as the seed chooses. */
const randomOf = (seed: number, length: number): TracedLoss => {
  const random = seeded(seed);
  return randomLoss(Array.from({ length }, () => Math.floor(random() * 1_000_000)));
};

/**
 * Every ready loss, with options that are not the default ones where there are any, fifty random ones, and forty random ones whose numbers are often
 * equal or lie on a bound.
 */
export const LOSSES: Readonly<Record<string, TracedLoss>> = {
  weightedSft: weightedSft(),
  'weightedSft perDatum': weightedSft({ perDatum: true }),
  policyGradient: policyGradient(),
  clippedPolicyGradient: clippedPolicyGradient(),
  'clippedPolicyGradient narrow': clippedPolicyGradient({ low: 0.95, high: 1.05 }),
  'klToReference k2': klToReference({ coefficient: 0.3 }),
  'klToReference k3': klToReference({ coefficient: 0.3, estimator: 'k3' }),
  l2ToReference: l2ToReference({ coefficient: 0.2 }),
  entropyBonus: entropyBonus({ coefficient: 0.1 }),
  klRegularized: klRegularized(weightedSft(), { coefficient: 0.5 }),
  'three together': addLosses(
    clippedPolicyGradient(),
    klToReference({ coefficient: 0.05, estimator: 'k3' }),
    entropyBonus({ coefficient: 0.01 }),
  ),
  softTargetsForward: softTargetsForward(),
  softTargetsReverse: softTargetsReverse(),
  dpo: dpo(),
  'dpo smoothed': dpo({ beta: 0.5, labelSmoothing: 0.1 }),
  ipo: ipo({ beta: 0.4 }),
  simpo: simpo(),
  orpo: orpo({ lambda: 0.7 }),
  ...Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`random ${index}`, randomOf(1000 + index, 4 + (index % 9))]),
  ),
  ...Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`tie ${index}`, randomOf(5000 + index, 6 + (index % 9))]),
  ),
};

export interface GivenInput {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** Numbers for each input of a loss, of the kind it is made for. */
export function inputsFor(name: string, loss: TracedLoss): readonly GivenInput[] {
  const random = seeded(Array.from(name).reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7));
  const isSoft = name.startsWith('softTargets');
  const isRandom = /^(random|tie)/.test(name);
  const columns = 3;
  return loss.inputs.map(({ name: input }) => {
    const rows = input.startsWith('rejected_') ? 7 : 5;
    const key = input.replace(/^(chosen|rejected)_/, '');
    const shape = isSoft ? [rows, columns] : [rows];
    const size = isSoft ? rows * columns : rows;
    const data = Array.from({ length: size }, (_, place) => {
      const row = isSoft ? Math.floor(place / columns) : place;
      switch (key) {
        case 'logprobs':
        case 'old_logprobs':
        case 'reference_logprobs':
          // Of three tokens together less than all.
          return isSoft ? Math.log(0.05 + 0.25 * random()) : -0.05 - 3 * random();
        case 'advantages':
          return 2 * random() - 1;
        case 'weights':
          // A prompt first; a teacher's probabilities with an empty place in the last row.
          if (isSoft) return row === 0 || place === size - 1 ? 0 : 0.05 + 0.25 * random();
          return row === 0 ? 0 : isRandom ? 2 * random() - 1 : 0.5 + random();
        default:
          return row === 0 ? 0 : 1;
      }
    });
    return { shape, data: name.startsWith('tie') ? data.map((value) => Math.round(2 * value) / 2) : data };
  });
}
