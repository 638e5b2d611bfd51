import { record, type LossExpression, type LossReturn, type Recording } from './trace/record.js';
import type { LossOps } from './trace/ops.js';
import type { Tensor } from './trace/Tensor.js';
import { TracedLoss } from './TracedLoss.js';

/** The inputs every loss may read: tensors with one row per position, under the names that the data has. */
export interface StandardLossInputs {
  /** The model's natural-log probability of each target token; [positions, K] if the targets are. */
  readonly logprobs: Tensor;
  /** How much each position counts. */
  readonly weights: Tensor;
  /** The advantage of each position. */
  readonly advantages: Tensor;
  /** 1 where a token counts, else 0. If the data has no mask, its `weights`. */
  readonly mask: Tensor;
  /** The logprobs the tokens were sampled with; sampled data has them under `logprobs`. */
  readonly old_logprobs: Tensor;
  /** The reference model's logprobs. */
  readonly reference_logprobs: Tensor;
  /** The target tokens' ids. */
  readonly target_tokens: Tensor;
}
/** The name of an input that every loss may read. */
export type LossInputName = keyof StandardLossInputs;

/** What the function of a loss is given: every input, by name. Those that it reads must be in the data. */
export type LossInputs<N extends string = never> = StandardLossInputs & Readonly<Record<N, Tensor>>;

/** Custom inputs, and how many dimensions each has. */
export type InputRanks = Readonly<Record<string, 0 | 1 | 2>>;

/** Options of `defineLoss`. */
export interface DefineLossOptions<I extends InputRanks = InputRanks> {
  /** For messages, and for the service. Default: the function's name, else `custom_loss`. */
  readonly name?: string;
  /** Further inputs by name, with their ranks: numbers that data carries in `lossFnInputs` under that name. Default: none. */
  readonly inputs?: I;
}

/**
 * A loss as a TypeScript expression, recorded once into the graph that the service runs.
 *
 * ```ts
 * const focal = defineLoss(({ logprobs, weights }, ops) => {
 *   const hard = ops.sub(1, logprobs.exp()).square();
 *   return ops.weightedSum(hard.mul(logprobs), weights).neg();
 * });
 * trainer.forwardBackwardCustom(data, focal);
 * ```
 * The function sees one datum at a time; the losses of a batch are summed. It runs once, on values without numbers, so what
 * JavaScript would decide by looking at a number cannot be recorded: branches on a value, loops over data and
 * arrays from outside are errors that name the line. Plain numbers from outside become part of the graph.
 *
 * @throws ValidationError naming what cannot be recorded, and where it stands.
 */
export function defineLoss<const I extends InputRanks = Readonly<Record<never, 0 | 1 | 2>>>(
  define: (inputs: LossInputs<keyof I & string>, ops: LossOps) => LossReturn,
  options: DefineLossOptions<I> = {},
): TracedLoss {
  const expression: LossExpression = (inputsOf, ops) => define(inputsOf('') as LossInputs<keyof I & string>, ops);
  const { name = define.name || 'custom_loss', inputs: ranks = {} } = options;
  return traced({ name, expression, ranks, entry: defineLoss });
}

interface Traced extends Pick<Recording, 'name' | 'expression' | 'entry'> {
  readonly ranks: InputRanks;
}

/** @internal A loss of one datum, from an expression. */
export function traced({ ranks, ...recording }: Traced): TracedLoss {
  const rankOf = (input: string) => ranks[input];
  const { inputs, graph } = record({ ...recording, derivedBy: ['logprobs'], ranks: rankOf });
  const { name, expression } = recording;
  return new TracedLoss({
    name,
    unit: 'datum',
    inputs: inputs.map((input) => ({ name: input, rank: rankOf(input) })),
    graph,
    record: expression,
  });
}
