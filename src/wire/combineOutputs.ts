import type { ForwardBackwardOutput } from './training.js';

type Reduce = (values: readonly number[], weights: readonly number[]) => number;
type MayReduce = (values: readonly number[], weights: readonly number[]) => number | undefined;

const sum: Reduce = (values) => values.reduce((total, value) => total + value, 0);
const max: Reduce = (values) => values.reduce((largest, value) => Math.max(largest, value), -Infinity);
const min: Reduce = (values) => values.reduce((smallest, value) => Math.min(smallest, value), Infinity);
const mean: Reduce = (values, weights) =>
  values.reduce((total, value, index) => total + value * weights[index]!, 0) /
  weights.reduce((total, weight) => total + weight, 0);
/** Sums 64-bit hashes. A double holds them only roughly; the sum of the given doubles is exact. */
const hash2: MayReduce = (values) =>
  values.every(Number.isFinite)
    ? Number(values.reduce((total, value) => BigInt.asUintN(64, total + BigInt(Math.trunc(value))), 0n))
    : undefined;

/** A map: as an object's key, `constructor` would name a function that reduces nothing. */
const REDUCERS: ReadonlyMap<string, MayReduce> = new Map(
  Object.entries({
    mean,
    sum,
    min,
    max,
    hash2,
    slack: ((values, weights) => max(values, weights) - mean(values, weights)) satisfies Reduce,
  }),
);

/**
 * The chunks of one call as one output: outputs in order, metrics reduced as the part after their colon says, weighted
 * by the number of outputs. `unique` keeps every value, the later ones as `key_1`, `key_2`, …. A metric with an unknown
 * reduction, or missing from any chunk, is dropped: no number is better than a wrong one.
 */
export function combineOutputs(outputs: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const [first] = outputs;
  if (first === undefined) return { lossFnOutputType: '', lossFnOutputs: [], metrics: {} };
  if (outputs.length === 1) return first;
  const weights = outputs.map((output) => output.lossFnOutputs.length);
  const metrics = new Map<string, number>();
  for (const key of Object.keys(first.metrics)) {
    if (!outputs.every((output) => Object.hasOwn(output.metrics, key))) continue;
    const values = outputs.map((output) => output.metrics[key]!);
    const reduction = key.slice(key.lastIndexOf(':') + 1);
    if (reduction === 'unique') {
      values.forEach((value, index) => {
        metrics.set(index === 0 ? key : `${key}_${index}`, value);
      });
    } else {
      const reduced = REDUCERS.get(reduction)?.(values, weights);
      if (reduced !== undefined) metrics.set(key, reduced);
    }
  }
  return {
    lossFnOutputType: first.lossFnOutputType,
    lossFnOutputs: outputs.flatMap((output) => output.lossFnOutputs),
    metrics: Object.fromEntries(metrics),
  };
}
