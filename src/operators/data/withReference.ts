import { forkJoin, from, map, type Observable, type ObservableInput, of, type OperatorFunction } from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import type { Datum } from '../../wire/datum.js';
import type { ModelInput } from '../../wire/modelInput.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { concatMapAhead } from '../flow/concatMapAhead.js';
import { cancelling } from '../../support/cancelling.js';
import { type MarkedBatch, numberBatches, type TrainingBatch } from '../training/trainingBatch.js';

/** What tells how likely a model finds a text. A `SamplingClient` is one; so is a fake in a test. */
export interface ComputesLogprobs {
  /** The log probability of every token, the first of which has none. */
  computeLogprobs(prompt: ModelInput): ObservableInput<Float32Array>;
}

/** Options of `withReference`. */
export interface WithReferenceOptions {
  /** How many further batches are requested before one is finished: an integer ≥ 0. Default 1. */
  readonly ahead?: number;
}

/**
 * Adds `reference_logprobs` to the datums of each batch: how likely the reference finds their targets. Losses like `dpo` and
 * `klToReference` take them.
 *
 * ```
 * source    (abc|)                 ahead 1
 * a         ---x|
 * b         -----y|                asked about at once
 * c            ---z|
 * result    ---x-y(z|)
 * ```
 * Stands before `train`; batches may be marked, and come out in order. Datums that have `reference_logprobs` already keep
 * them. An error of the reference comes out in its turn; an error of the source at once. Completes after the last batch.
 * Unsubscribing cancels what is asked for. Holds the batches that are asked about; its {@link Gate} is closed while no more may be.
 */
export function withReference<T = unknown>(
  reference: ComputesLogprobs,
  { ahead = 1 }: WithReferenceOptions = {},
): OperatorFunction<TrainingBatch<T>, MarkedBatch<T>> {
  checkAtLeast({ ahead }, 0);
  const ask = concatMapAhead(
    (batch: MarkedBatch<T>) => {
      const { data } = batch;
      if (data.length === 0) return of(batch);
      return forkJoin(data.map((datum, place) => asked(reference, datum, place))).pipe(
        map((made): MarkedBatch<T> => ({ ...batch, data: made })),
      );
    },
    { ahead },
  );
  return (source) => numberBatches(source).pipe(ask);
}

function asked(reference: ComputesLogprobs, datum: Datum, place: number): Observable<Datum> {
  const { modelInput, lossFnInputs } = datum;
  if (lossFnInputs['reference_logprobs'] !== undefined) return of(datum);
  const targets = TensorData.from(lossFnInputs['target_tokens'] ?? [], 'int64');
  if (targets.shape.length !== 1 || targets.data.length !== modelInput.length)
    throw new ValidationError(`datum ${place} needs one target token for each position, to ask a reference about`);
  // The targets are the input shifted by one, and one more.
  const whole = modelInput.appendInt(targets.data.at(-1)!);
  return from(cancelling(reference.computeLogprobs(whole))).pipe(
    map((logprobs) => {
      const wanted = logprobs.subarray(logprobs.length - targets.data.length);
      if (wanted.length !== targets.data.length)
        throw new ValidationError(
          `the reference gave ${logprobs.length} logprobs for the ${targets.data.length + 1} tokens of datum ${place}`,
        );
      const values = new TensorData({ dtype: 'float32', data: Float32Array.from(wanted, finite) });
      return { ...datum, lossFnInputs: { ...lossFnInputs, reference_logprobs: values } };
    }),
  );
}

/** Positions of images have no logprob, and no weight either. */
const finite = (value: number): number => (Number.isNaN(value) ? 0 : value);
