import { forkJoin, map, type Observable, of, type OperatorFunction } from 'rxjs';
import { checkAtLeast, checkIntegers } from '../../support/checks.js';
import type { Datum } from '../../wire/datum.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { TopkLogprobs } from '../../wire/sampling.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { concatMapAhead } from '../flow/concatMapAhead.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../sampling/sampleFrom.js';
import { type MarkedBatch, numberBatches, type TrainingBatch } from '../training/trainingBatch.js';

/** Options of `withSoftTargets`. */
export interface WithSoftTargetsOptions {
  /** How many of the teacher's likeliest tokens are kept at each position: an integer ≥ 1. */
  readonly topK: number;
  /**
   * What the teacher reads instead of the datum's whole sequence, for a teacher that is told more than the student. It must end with the
   * same tokens, from the first one that is trained on. Default: the sequence itself.
   */
  readonly teacherReads?: (whole: ModelInput, datum: Datum) => ModelInput;
  /** How many further batches are requested from the teacher before one is finished: an integer ≥ 0. Default 1. */
  readonly ahead?: number;
}

/**
 * Replaces the targets of each datum by a teacher's: its `topK` likeliest tokens at every position that has a weight, weighted by their
 * probabilities. What `softTargetsForward` and `softTargetsReverse` learn from.
 *
 * ```
 * source    (abc|)                 ahead 1
 * a         ---x|
 * b         -----y|                asked about at once
 * c            ---z|
 * result    ---x-y(z|)
 * ```
 * Stands before `train`; batches may be marked, and come out in order. An error of the teacher comes out in its turn; an error of the
 * source at once. Completes after the last batch. Unsubscribing cancels what is asked for. Holds the batches that are asked about;
 * its {@link Gate} is closed while no more may be.
 */
export function withSoftTargets<T = unknown>(
  teacher: Sampleable,
  { topK, teacherReads = (whole) => whole, ahead = 1 }: WithSoftTargetsOptions,
): OperatorFunction<TrainingBatch<T>, MarkedBatch<T>> {
  checkIntegers({ topK }, 1);
  checkAtLeast({ ahead }, 0);
  const ask = (datum: Datum, place: number): Observable<Datum> => {
    const { modelInput, lossFnInputs } = datum;
    const targets = TensorData.from(lossFnInputs['target_tokens'] ?? [], 'int64');
    const weights = TensorData.from(lossFnInputs['weights'] ?? [], 'float32').toDense();
    if (targets.shape.length !== 1 || weights.data.length !== targets.data.length || targets.data.length === 0)
      throw new ValidationError(`datum ${place} needs one target token and one weight for each position`);
    const prompt = teacherReads(modelInput.appendInt(targets.data.at(-1)!), datum);
    const samplingParams = { maxTokens: 1 };
    const asked = teacher.sample({ prompt, samplingParams, includePromptLogprobs: true, topkPromptLogprobs: topK });
    return cancelling(asked).pipe(
      map(({ topkPromptLogprobs }) => {
        if (topkPromptLogprobs === undefined)
          throw new ValidationError('the service gave no top-k logprobs of the prompt: it cannot be a teacher');
        return { ...datum, lossFnInputs: { ...lossFnInputs, ...soft(topkPromptLogprobs, weights, topK, place) } };
      }),
    );
  };
  const askAll = concatMapAhead(
    (batch: MarkedBatch<T>) =>
      batch.data.length === 0
        ? of(batch)
        : forkJoin(batch.data.map(ask)).pipe(map((data): MarkedBatch<T> => ({ ...batch, data }))),
    { ahead },
  );
  return (source) => numberBatches(source).pipe(askAll);
}

/** The teacher's tokens and probabilities for each target, aligned at the end. */
function soft({ tokenIds, logprobs, k, length }: TopkLogprobs, weights: TensorData, topK: number, place: number) {
  const rows = weights.data.length;
  const tokens = new Int32Array(rows * topK);
  const probabilities = new Float32Array(rows * topK);
  for (let row = 0; row < rows; row++) {
    if (weights.data[row] === 0) continue;
    const from = length - rows + row;
    if (from < 0) throw new ValidationError(`what the teacher read is shorter than what datum ${place} trains on`);
    for (let column = 0; column < Math.min(k, topK); column++) {
      tokens[row * topK + column] = tokenIds[from * k + column]!;
      probabilities[row * topK + column] = Math.exp(logprobs[from * k + column]!);
    }
  }
  const shape = [rows, topK];
  return {
    target_tokens: new TensorData({ dtype: 'int64', data: tokens, shape }).toSparse(),
    weights: new TensorData({ dtype: 'float32', data: probabilities, shape }).toSparse(),
  };
}
