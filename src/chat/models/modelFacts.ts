import { findModel, MODELS } from './modelTable.js';
import { checkIntegers } from '../../support/checks.js';

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

const BASE = 5e-5;
/** LoRA takes about ten times the rate of full fine-tuning, whatever the model. See "LoRA Without Regret". */
const LORA_FACTOR = 10;
const REFERENCE_HIDDEN_SIZE = 2000;
const EXPONENTS: readonly (readonly [family: string, exponent: number])[] = [
  ['llama', 0.781],
  ['qwen', 0.0775],
];

/** Options of `getLr`. */
export interface GetLrOptions {
  /** Whether LoRA is trained, as on the service, or the whole model. Default true. */
  readonly isLora?: boolean;
  /** Hidden size, for a model of the family that is not in the table. */
  readonly hiddenSize?: number;
}

/**
 * A learning rate to start from: 5e-5 · (10 for LoRA) · (2000 / hidden size)^e, with e fitted for Llama and for Qwen.
 *
 * @throws RangeError for another family, for which no exponent was fitted, or if the hidden size is not known
 */
export function getLr(model: string, { isLora = true, hiddenSize }: GetLrOptions = {}): number {
  const name = model.split(':', 1)[0]!.toLowerCase();
  const exponent = EXPONENTS.find(([family]) => name.includes(family))?.[1];
  if (exponent === undefined) {
    throw new RangeError(
      `no learning rate has been fitted for ${model}: choose one, for instance from a short sweep around 1e-4`,
    );
  }
  const hidden = hiddenSize ?? findModel(model)?.facts?.hiddenSize;
  if (hidden === undefined) throw new RangeError(`the hidden size of ${model} is not known: pass hiddenSize`);
  if (!(hidden > 0)) throw new RangeError(`hiddenSize must be > 0, got ${hidden}`);
  return BASE * (isLora ? LORA_FACTOR : 1) * (REFERENCE_HIDDEN_SIZE / hidden) ** exponent;
}

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

/** Every model of the public cookbook → the renderers made for it, the recommended one first; also the embedded service's own models and small ones that it loads. */
export const MODEL_RENDERERS: Readonly<Record<string, readonly [string, ...string[]]>> = Object.fromEntries(
  Object.entries(MODELS).map(([name, { renderers }]) => [name, renderers]),
);

/** Models of this maker that are newer than the table are written as this one. */
const INKLING = 'thinkingmachines/Inkling';

/**
 * The renderers made for a model, the recommended one first; a `:checkpoint` suffix is ignored.
 *
 * @throws RangeError for a model that is not in the table: pass a renderer's name to `getRenderer` instead
 */
export function renderersFor(model: string): readonly [string, ...string[]] {
  const known = findModel(model) ?? (model.startsWith(INKLING) ? findModel(INKLING) : undefined);
  if (known !== undefined) return known.renderers;
  throw new RangeError(
    `no renderer is known for ${model}: choose one by name with getRenderer, or 'chat_template' for its own template`,
  );
}

/** The recommended renderer for a model: `rendererFor('Qwen/Qwen3-8B')` is `'qwen3'`. Throws as {@link renderersFor}. */
export function rendererFor(model: string): string {
  return renderersFor(model)[0];
}
