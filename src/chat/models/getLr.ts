import { findModel } from './modelTable.js';

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
