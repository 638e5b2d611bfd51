import type { Datum } from '../../wire/datum.js';
import { namedTensor, type TensorData, type TensorInput } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { Tokenizer } from '../tokenizer/Tokenizer.js';
import { countedText } from './countedText.js';

/** What a forward pass gives back for one datum. */
export type LossOutputs = Readonly<Record<string, TensorData>>;

/** The values of one datum, position by position. */
interface Rows {
  readonly targets: ArrayLike<number>;
  readonly weights: ArrayLike<number>;
  readonly logprobs: ArrayLike<number>;
}

/**
 * Mean negative log-likelihood of a batch, in nats per token: −Σ logprob · weight / Σ weight over all its datums; NaN if nothing has weight.
 *
 * ```ts
 * const result = await trainer.forward(batch, 'cross_entropy');
 * meanNll(batch, result.lossFnOutputs);
 * ```
 * @throws ValidationError if data and outputs do not belong together
 */
export function meanNll(data: readonly Datum[], outputs: readonly LossOutputs[]): number {
  let logprob = 0;
  let total = 0;
  for (const { weights, logprobs } of rowsOf(data, outputs)) {
    for (let row = 0; row < weights.length; row++) {
      // A weight of 0 also silences a logprob of −∞.
      if (weights[row] === 0) continue;
      logprob += logprobs[row]! * weights[row]!;
      total += weights[row]!;
    }
  }
  return total === 0 ? NaN : -logprob / total;
}

/**
 * Bits per byte of a batch, which compares models with different tokenizers; NaN if no byte is trained on.
 *
 * Counted are tokens with a weight above 0 that are not special, with their whole logprob: weights only choose. The bytes are those of the
 * text of each run of counted tokens.
 *
 * @throws ValidationError if data and outputs do not belong together
 */
export function bitsPerByte(data: readonly Datum[], outputs: readonly LossOutputs[], tokenizer: Tokenizer): number {
  let nats = 0;
  let bytes = 0;
  for (const { targets, weights, logprobs } of rowsOf(data, outputs)) {
    const counted = countedText(targets, weights, tokenizer);
    for (const place of counted.places) nats -= logprobs[place]!;
    bytes += counted.bytes;
  }
  return bytes === 0 ? NaN : nats / (Math.LN2 * bytes);
}

function rowsOf(data: readonly Datum[], outputs: readonly LossOutputs[]): Rows[] {
  if (data.length !== outputs.length)
    throw new ValidationError(`${data.length} datums need as many outputs, got ${outputs.length}`);
  return data.map(({ lossFnInputs }, index) => {
    const targets = values(lossFnInputs, 'target_tokens', `data[${index}]`);
    const weights = values(lossFnInputs, 'weights', `data[${index}]`);
    const logprobs = values(outputs[index]!, 'logprobs', `outputs[${index}]`);
    if (weights.length !== targets.length || logprobs.length !== targets.length) {
      throw new ValidationError(
        `data[${index}] has ${targets.length} targets, ${weights.length} weights and ${logprobs.length} logprobs: they must be as many`,
      );
    }
    return { targets, weights, logprobs };
  });
}

function values(tensors: Readonly<Record<string, TensorInput>>, name: string, where: string): ArrayLike<number> {
  const input = tensors[name];
  if (input === undefined) throw new ValidationError(`${where} has no ${name}`);
  return namedTensor(name, input).toDense().data;
}
