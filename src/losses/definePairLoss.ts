import type { DefineLossOptions, InputRanks, LossInputs } from './defineLoss.js';
import type { LossOps } from './trace/ops.js';
import { record, type LossExpression, type LossReturn } from './trace/record.js';
import { TracedLoss } from './TracedLoss.js';

/** The two sides of a preference, each with the inputs of its datum. */
export interface PairInputs<N extends string = never> {
  /** The tensors of the preferred answer. */
  readonly chosen: LossInputs<N>;
  /** The tensors of the other one. */
  readonly rejected: LossInputs<N>;
}

/**
 * A loss of pairs: the data has the preferred datum of each pair first, then the other one.
 *
 * ```ts
 * const hinge = definePairLoss(({ chosen, rejected }, ops) => {
 *   const better = ops.weightedMean(chosen.logprobs, chosen.weights);
 *   return ops.weightedMean(rejected.logprobs, rejected.weights).sub(better).add(1).relu();
 * });
 * trainer.forwardBackwardCustom([chosen, rejected], hinge);
 * ```
 * The service runs losses of one datum each, so this one is evaluated here, between a forward and a backward pass; in
 * `train` the passes of neighbouring steps share a cycle. The loss of a batch is the mean over its pairs.
 *
 * @throws ValidationError naming what cannot be recorded, and where it stands.
 */
export function definePairLoss<const I extends InputRanks = Readonly<Record<never, 0 | 1 | 2>>>(
  define: (pair: PairInputs<keyof I & string>, ops: LossOps) => LossReturn,
  options: DefineLossOptions<I> = {},
): TracedLoss {
  const name = options.name ?? (define.name || 'pair_loss');
  const ranks: InputRanks = options.inputs ?? {};
  type Side = LossInputs<keyof I & string>;
  const expression: LossExpression = (inputsOf, ops) =>
    define({ chosen: inputsOf('chosen_') as Side, rejected: inputsOf('rejected_') as Side }, ops);
  const rankOf = (input: string) => ranks[input.slice(input.indexOf('_') + 1)];
  const { inputs, graph } = record({
    name,
    derivedBy: ['chosen_logprobs', 'rejected_logprobs'],
    ranks: rankOf,
    expression,
    entry: definePairLoss,
  });
  return new TracedLoss({
    name,
    unit: 'pair',
    inputs: inputs.map((input) => ({ name: input, rank: rankOf(input) })),
    graph,
    record: expression,
  });
}
