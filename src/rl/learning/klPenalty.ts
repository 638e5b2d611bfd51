import { ValidationError } from '../../wire/tinkerError.js';
import { type MaskedDatum, valuesOf, withAdvantages } from './trajectoryData.js';

/** Each value plus γ times the sum that follows it: [1, 2, 3] with ½ gives [2.75, 3.5, 3]. */
export function discounted(values: Float32Array, discount: number): Float32Array {
  const sums = new Float32Array(values.length);
  let running = 0;
  for (let place = values.length - 1; place >= 0; place--) {
    running = values[place]! + discount * running;
    sums[place] = running;
  }
  return sums;
}

/**
 * Adds coefficient · mask · (mean(d) − d) to the advantages, where d is the sampled minus the reference log probability
 * and the mean goes over all tokens trained on; with a discount above 0, its discounted future sum. Tokens that were only read
 * stay at 0: the public cookbook gives them the sum of what follows, and so trains on its own prompts. `reference` has a value for
 * each token of the whole sequence, the first of which nothing predicts.
 */
export function penalized(
  data: readonly MaskedDatum[],
  reference: readonly Float32Array[],
  coefficient: number,
  discount: number,
): { readonly data: readonly MaskedDatum[]; readonly kl: number } {
  let sum = 0;
  let tokens = 0;
  const differences = data.map(({ datum, mask }, index) => {
    const sampled = valuesOf(datum, 'logprobs');
    return mask.map((trained, place) => {
      if (trained === 0) return 0;
      const difference = sampled[place]! - reference[index]![place + 1]!;
      if (!Number.isFinite(difference)) {
        throw new ValidationError(
          `the reference of klPenalty gives token ${place + 1} of a sequence a log probability of ` +
            `${reference[index]![place + 1]}, which must be a finite number`,
        );
      }
      sum += difference;
      tokens++;
      return difference;
    });
  });
  const mean = tokens === 0 ? 0 : sum / tokens;
  return {
    kl: mean,
    data: data.map((each, index) => {
      const penalty = each.mask.map((trained, place) => coefficient * trained * (mean - differences[index]![place]!));
      const added = discount > 0 ? discounted(penalty, discount) : penalty;
      return withAdvantages(
        each,
        valuesOf(each.datum, 'advantages').map((advantage, place) => advantage + each.mask[place]! * added[place]!),
      );
    }),
  };
}
