import { checkAtLeast } from '../../support/checks.js';
import type { Datum } from '../../wire/datum.js';
import { ModelInput } from '../../wire/modelInput.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { shiftChunks, truncateChunks } from './chunks.js';
import { reduceWeights, type WeightReduction } from './reduceWeights.js';

/** A sequence with one weight for each of its positions; weight i belongs to token i. What a renderer's `buildSupervisedExample` gives. */
export interface WeightedExample {
  /** The whole sequence. */
  readonly modelInput: ModelInput;
  /** How much each position counts, one number per position. */
  readonly weights: ArrayLike<number>;
}

/** Options of everything that makes datums. */
export interface DatumOptions {
  /** Positions of the whole sequence that are kept, at least 2, counted from the left. Default: all. */
  readonly maxLength?: number;
  /** Default `mean`. */
  readonly reduction?: WeightReduction;
}

/**
 * A training datum of a weighted sequence: cut to `maxLength`, shifted by one, its weights reduced.
 *
 * @throws ValidationError if weights and positions differ in number, or fewer than two positions are left
 */
export function datumFromExample({ modelInput, weights }: WeightedExample, options: DatumOptions = {}): Datum {
  const { maxLength = Infinity, reduction = 'mean' } = options;
  checkAtLeast({ maxLength }, 2);
  if (weights.length !== modelInput.length) {
    throw new ValidationError(`${modelInput.length} positions need as many weights, got ${weights.length}`);
  }
  const { chunks, targets } = shiftChunks(truncateChunks(modelInput.chunks, maxLength));
  const shifted = Array.prototype.slice.call(weights, 1, targets.length + 1) as number[];
  return {
    modelInput: new ModelInput(chunks),
    lossFnInputs: {
      target_tokens: TensorData.from(targets, 'int64'),
      weights: TensorData.from(reduceWeights(shifted, reduction), 'float32'),
    },
  };
}

/** {@link datumFromExample} of plain tokens. */
export function datumFromTokensWeights(
  tokens: ArrayLike<number>,
  weights: ArrayLike<number>,
  options: DatumOptions = {},
): Datum {
  return datumFromExample({ modelInput: ModelInput.fromInts(tokens), weights }, options);
}
