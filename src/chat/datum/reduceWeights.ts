/**
 * How the weights of an example become those of its loss.
 *
 * - `mean`: scaled to sum to 1, so that a long example pulls no harder than a short one
 * - `sum` or `none`: as given, so that every token pulls alike
 */
export type WeightReduction = 'mean' | 'sum' | 'none';

/** Weights by a reduction, as a new array. Weights that sum to 0 or less stay as they are: there is no mean of nothing. */
export function reduceWeights(weights: ArrayLike<number>, reduction: WeightReduction): Float32Array {
  const reduced = Float32Array.from(weights);
  if (reduction !== 'mean') return reduced;
  const total = reduced.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? reduced.map((weight) => weight / total) : reduced;
}
