import { checkIntegers } from '../../support/checks.js';
import { modelFacts } from './modelFacts.js';

/** The same switches as when a LoRA training client is created. */
export interface LoraParameterCountOptions {
  /** Default 32. */
  readonly rank?: number;
  /** Default true. */
  readonly trainMlp?: boolean;
  /** Default true. */
  readonly trainAttn?: boolean;
  /** Default true. */
  readonly trainUnembed?: boolean;
}

/**
 * How many parameters LoRA trains on a model.
 *
 * @throws RangeError for a model that is not in the table, a rank below 1, or if nothing is trained
 */
export function loraParameterCount(model: string, options: LoraParameterCountOptions = {}): number {
  const { rank = 32, trainMlp = true, trainAttn = true, trainUnembed = true } = options;
  checkIntegers({ rank }, 1);
  if (!trainMlp && !trainAttn && !trainUnembed)
    throw new RangeError('trainMlp, trainAttn or trainUnembed must be true');
  const { mlp, attention, unembedding } = modelFacts(model).loraParameters;
  return rank * ((trainMlp ? mlp : 0) + (trainAttn ? attention : 0) + (trainUnembed ? unembedding : 0));
}
