import { ValidationError } from '../wire/tinkerError.js';
import { traced } from './defineLoss.js';
import { Tensor } from './trace/Tensor.js';
import type { LossExpression } from './trace/record.js';
import type { TracedLoss } from './TracedLoss.js';

/**
 * Several losses of one datum as one: their values add up, their metrics stand beside each other.
 *
 * ```ts
 * const loss = addLosses(clippedPolicyGradient(), klToReference({ coefficient: 0.05 }), entropyBonus({ coefficient: 0.01 }));
 * ```
 * @throws ValidationError for a loss of pairs, and where two losses declare an input differently or report a metric of one name.
 */
export function addLosses(first: TracedLoss, ...others: readonly TracedLoss[]): TracedLoss {
  const all = [first, ...others];
  const ranks: Record<string, 0 | 1 | 2> = {};
  for (const { name, unit, inputs } of all) {
    if (unit !== 'datum') throw new ValidationError(`${name} is a loss of ${unit}s, which cannot be added to others`);
    for (const { name: input, rank } of inputs) {
      if (rank === undefined) continue;
      if ((ranks[input] ?? rank) !== rank)
        throw new ValidationError(`${name} takes ${input} with rank ${rank}, another loss with rank ${ranks[input]}`);
      ranks[input] = rank;
    }
  }
  const expression: LossExpression = (inputsOf, ops) => {
    const made = all.map(({ record }) => record(inputsOf, ops));
    const parts = made.map((each) => (each instanceof Tensor ? { loss: each, metrics: {} } : each));
    const [head, ...rest] = parts;
    const metrics = new Map<string, { readonly value: Tensor; readonly of: string }>();
    for (const [place, part] of parts.entries()) {
      for (const [key, value] of Object.entries(part.metrics ?? {})) {
        const metric = key.replace(/:mean$/, '');
        const [known, of] = [metrics.get(metric)?.of, all[place]!.name];
        if (known !== undefined)
          throw new ValidationError(`${known} and ${of} both report the metric ${metric}: rename one`);
        metrics.set(metric, { value, of });
      }
    }
    return {
      loss: rest.reduce((sum, { loss }) => sum.add(loss), head!.loss),
      metrics: Object.fromEntries(Array.from(metrics, ([metric, { value }]) => [metric, value])),
    };
  };
  return traced({ name: all.map(({ name }) => name).join('_plus_'), expression, ranks, entry: addLosses });
}
