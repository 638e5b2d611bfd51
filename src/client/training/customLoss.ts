import type { Datum, PreparedDatum } from '../../wire/datum.js';
import type { CustomLossInput } from '../../wire/customLoss.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { ForwardBackwardOutput } from '../../wire/training.js';
import { APIResponseValidationError, CustomLossError } from '../errors.js';

/** What a custom loss makes of the logprobs: its value, and its derivative by each of them. */
export interface CustomLossResult {
  readonly loss: number;
  /** One array a datum, as long as that datum's logprobs. */
  readonly gradients: readonly (Float32Array | readonly number[])[];
  readonly metrics?: Readonly<Record<string, number>>;
}
/** A loss in closed form. `logprobs[i]` are the log probabilities of datum i's target tokens. */
export type CustomLossFn = (data: readonly Datum[], logprobs: readonly Float32Array[]) => CustomLossResult;

/** A loss that was uploaded and runs on the server, in one pass. */
export interface LossHandle {
  readonly name: string;
  readonly inputs: readonly CustomLossInput[];
  readonly sessionId: string;
  readonly lossId: string;
}

/** The data of the forward pass: the targets alone, with weights of zero where there are none. */
export function forwardData(data: readonly PreparedDatum[]): PreparedDatum[] {
  return data.map((datum, index) => {
    const targets = datum.lossFnInputs['target_tokens'];
    if (targets === undefined)
      throw new ValidationError(`data[${index}].lossFnInputs needs target_tokens for a custom loss`);
    const weights = datum.lossFnInputs['weights'] ?? zeros(targets);
    return { ...datum, lossFnInputs: { target_tokens: targets, weights } };
  });
}

function zeros({ shape }: TensorData): TensorData {
  const size = shape.reduce((product, extent) => product * extent, 1);
  return new TensorData({ dtype: 'float32', data: new Float32Array(size), shape }).toSparse();
}

/** Runs the caller's loss on the logprobs of the forward pass. @throws CustomLossError, also for gradients that do not fit. */
export function runCustomLoss(
  loss: CustomLossFn,
  data: readonly Datum[],
  forward: ForwardBackwardOutput,
): CustomLossResult {
  if (forward.lossFnOutputs.length !== data.length)
    throw new APIResponseValidationError(
      `the forward pass gave ${forward.lossFnOutputs.length} outputs for ${data.length} datums`,
    );
  const logprobs = forward.lossFnOutputs.map((output, index) => {
    const tensor = output['logprobs'];
    if (tensor === undefined)
      throw new APIResponseValidationError(`the forward pass gave no logprobs for datum ${index}`);
    return Float32Array.from(tensor.toDense().data);
  });
  let result: CustomLossResult;
  try {
    result = loss(data, logprobs);
  } catch (error) {
    throw new CustomLossError(`the custom loss threw: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  checkResult(result, logprobs);
  return result;
}

function checkResult(result: CustomLossResult | undefined, logprobs: readonly Float32Array[]): void {
  const { loss, gradients } = result ?? {};
  if (!Array.isArray(gradients))
    throw new CustomLossError('the custom loss must return { loss, gradients }, and not a promise of it');
  if (!Number.isFinite(loss)) throw new CustomLossError(`the custom loss is ${String(loss)}`);
  if (gradients.length !== logprobs.length)
    throw new CustomLossError(`the custom loss gave ${gradients.length} gradients for ${logprobs.length} datums`);
  gradients.forEach((gradient: Float32Array | readonly number[] | undefined, index) => {
    const { length } = logprobs[index]!;
    if (gradient?.length !== length)
      throw new CustomLossError(`gradient ${index} has ${gradient?.length ?? 0} values for ${length} logprobs`);
    for (let at = 0; at < length; at++) {
      if (!Number.isFinite(gradient[at]))
        throw new CustomLossError(`gradient ${index} holds a value that is not finite, at ${at}`);
    }
  });
}

/** Data whose cross-entropy has the custom loss's gradient: weights = −dLoss/dlogprob. */
export function backwardData(
  data: readonly PreparedDatum[],
  forward: ForwardBackwardOutput,
  { gradients }: CustomLossResult,
): PreparedDatum[] {
  return data.map((datum, index) => {
    const shape = forward.lossFnOutputs[index]!['logprobs']!.shape;
    const weights = Float32Array.from(gradients[index]!, (gradient) => -gradient);
    return {
      ...datum,
      lossFnInputs: {
        target_tokens: datum.lossFnInputs['target_tokens']!,
        weights: new TensorData({ dtype: 'float32', data: weights, shape }).toSparse(),
      },
    };
  });
}

/** The answer of the backward pass as the caller's loss would give it. */
export function withCustomMetrics(
  backward: ForwardBackwardOutput,
  { loss, metrics = {} }: CustomLossResult,
): ForwardBackwardOutput {
  const { 'loss:sum': surrogate, ...rest } = backward.metrics;
  return {
    ...backward,
    metrics: {
      ...rest,
      ...metrics,
      'loss:sum': loss,
      ...(surrogate === undefined ? {} : { 'surrogate_loss:sum': surrogate }),
    },
  };
}

/** Checks that every datum has the inputs an uploaded loss takes, in the ranks it declared. */
export function checkLossInputs({ name, inputs }: LossHandle, data: readonly PreparedDatum[]): void {
  data.forEach((datum, index) => {
    for (const input of inputs) {
      const key = input.name === 'logprobs' ? 'target_tokens' : input.name;
      const tensor = datum.lossFnInputs[key];
      if (tensor === undefined)
        throw new ValidationError(`data[${index}].lossFnInputs.${key} is missing: the loss ${name} takes it`);
      if (tensor.shape.length !== input.rank) {
        throw new ValidationError(
          `data[${index}].lossFnInputs.${key} has rank ${tensor.shape.length}, the loss ${name} declared ${input.rank}`,
        );
      }
    }
  });
}
