import { findModel, MODELS } from './modelTable.js';

/** Parameters that LoRA of rank 1 adds to the three parts of a model; rank r adds r times as many. */
export interface LoraParameters {
  /** Parameters in the MLP layers. */
  readonly mlp: number;
  /** Parameters in the attention layers. */
  readonly attention: number;
  /** Parameters in the unembedding. */
  readonly unembedding: number;
}

/** What is known of a model without asking anyone. */
export interface ModelFacts {
  /** Width of the model. */
  readonly hiddenSize: number;
  /** Parameters as the maker writes them; of a mixture of experts all and active ones: `30B-A3B`. */
  readonly size: string;
  /** LoRA parameters per unit of rank. */
  readonly loraParameters: LoraParameters;
  /** Whether it was trained to converse, as opposed to continue text. */
  readonly isChat: boolean;
  /** Whether prompts may contain images. */
  readonly takesImages: boolean;
  /** Whether prompts may contain audio. */
  readonly takesAudio: boolean;
}

/** Facts about every model of the public tinker-cookbook. */
export const MODEL_FACTS: Readonly<Record<string, ModelFacts>> = Object.fromEntries(
  Object.entries(MODELS).flatMap(([name, { facts }]) => (facts === undefined ? [] : [[name, facts]])),
);

/**
 * Facts about a model; a `:suffix` of its name is ignored.
 *
 * @throws RangeError for a model that is not in the table
 */
export function modelFacts(model: string): ModelFacts {
  const known = findModel(model)?.facts;
  if (known === undefined) throw new RangeError(`no facts are known about ${model}`);
  return known;
}
