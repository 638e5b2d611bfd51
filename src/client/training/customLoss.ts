import { catchError, defer, finalize, map, of, tap, type Observable } from 'rxjs';
import { checkCustomLoss } from '../../losses/checkCustomLoss.js';
import { lossInput } from '../../losses/evaluateLoss.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import {
  CreateCustomLossRequest,
  CreateCustomLossResponse,
  type CustomLossGraph,
  type CustomLossInput,
} from '../../wire/customLoss.js';
import type { Datum, PreparedDatum } from '../../wire/datum.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { ForwardBackwardOutput } from '../../wire/training.js';
import { once } from '../../transport/once.js';
import { prepare } from '../../wire/record.js';
import { APIResponseValidationError, APIStatusError, CustomLossError, RequestFailedError } from '../errors.js';
import { submitWork } from '../results/awaitResult.js';
import type { OpenSession } from '../session/Session.js';
import type { OnAccepted } from '../TinkerFuture.js';

/** What a custom loss makes of the logprobs: its value, and its derivative by each of them. */
export interface CustomLossResult {
  /** The loss: what training makes smaller. */
  readonly loss: number;
  /** One array per datum, as long as that datum's logprobs. */
  readonly gradients: readonly (Float32Array | readonly number[])[];
  /** Numbers to report beside the loss, by name. Default: none. */
  readonly metrics?: Readonly<Record<string, number>>;
}
/** A loss in closed form. `logprobs[i]` are the log probabilities of datum i's target tokens. */
export type CustomLossFn = (data: readonly Datum[], logprobs: readonly Float32Array[]) => CustomLossResult;

/** A loss that was uploaded and runs on the server, in one pass. */
export interface LossHandle {
  /** The loss's name, as it was defined. */
  readonly name: string;
  /** The tensors it reads, in order, `logprobs` first. */
  readonly inputs: readonly CustomLossInput[];
  /** The session it was uploaded in: it is valid only there. */
  readonly sessionId: string;
  /** The service's id of the uploaded loss. */
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

/** A custom loss as data, ready to be uploaded. */
export interface CustomLossDefinition {
  /** A name for messages and for the service. */
  readonly name: string;
  /** `logprobs` first, then the loss inputs it reads. */
  readonly inputs: readonly CustomLossInput[];
  /** The computation, as the nodes that torch.fx records. */
  readonly graph: CustomLossGraph;
}

/** The losses that one session has uploaded. */
export class CustomLosses {
  /** Uploaded, or being uploaded. */
  readonly #known = new Set<string>();
  readonly #handles = new Map<string, LossHandle>();
  readonly #traced = new Map<string, Observable<LossHandle | undefined>>();
  #next = 0;

  /**
   * The handle of a traced loss: uploaded the first time, then the same one again. Undefined if the service does not
   * run it, which is remembered.
   */
  handleOf(
    session: OpenSession,
    { name, inputs, graph }: TracedLoss,
    data: readonly PreparedDatum[],
    onAccepted: OnAccepted,
  ): Observable<LossHandle | undefined> {
    const ranked = inputs.map((input): CustomLossInput => {
      const rank = input.rank ?? rankOf(data[0]!, input.name);
      return { name: input.name, rank };
    });
    const key = JSON.stringify([ranked, graph]);
    const known = this.#traced.get(key);
    if (known !== undefined) return known;
    const uploading = once(
      defer(() => {
        const handle = this.#handles.get(key);
        if (handle !== undefined) return of(handle);
        checkCustomLoss(name, ranked, graph);
        return this.upload(session, { name, inputs: ranked, graph }, onAccepted);
      }).pipe(
        catchError((error: unknown) => {
          if (!isRefusal(error)) throw error;
          session.connection.events.emit({ type: 'loss-runs-here', target: name, reason: error.message });
          return of(undefined);
        }),
      ),
    );
    this.#traced.set(key, uploading);
    return uploading;
  }

  /** @throws ValidationError if the service runs no custom losses, or has this one already. */
  upload(
    session: OpenSession,
    { name, inputs, graph }: CustomLossDefinition,
    onAccepted: OnAccepted,
  ): Observable<LossHandle> {
    if (!session.connection.config.customLossServerSide) {
      throw new ValidationError(
        'this service does not run custom losses; pass a function to forwardBackwardCustom instead',
      );
    }
    const key = JSON.stringify([inputs, graph]);
    if (this.#known.has(key))
      throw new ValidationError(`this session has the loss ${name} already: use its handle again`);
    const json = prepare(CreateCustomLossRequest, {
      sessionId: session.id,
      customLossSeqId: this.#next++,
      name,
      inputs: [...inputs],
      graph: graph as never,
    });
    const work = {
      requestType: 'CreateCustomLoss',
      path: 'create_custom_loss',
      target: name,
      json,
      format: { json: CreateCustomLossResponse },
    } as const;
    this.#known.add(key);
    let uploaded = false;
    return submitWork(session, work, onAccepted).pipe(
      tap(() => (uploaded = true)),
      // An upload that failed or was cancelled gave nobody a handle: the same loss may be uploaded again.
      finalize(() => uploaded || this.#known.delete(key)),
      map(({ lossId }) => {
        const handle = { name, inputs, sessionId: session.id, lossId };
        this.#handles.set(key, handle);
        return handle;
      }),
    );
  }
}

/** Whether a service that was asked to run a loss said that it will not, rather than failing temporarily. */
const isRefusal = (error: unknown): error is RequestFailedError | APIStatusError =>
  error instanceof RequestFailedError
    ? error.category === 'user'
    : error instanceof APIStatusError && [400, 404, 405, 422, 501].includes(error.status);

function rankOf(datum: PreparedDatum, input: string): 0 | 1 | 2 {
  const { tensor } = lossInput(datum, input);
  return (tensor as TensorData).shape.length as 0 | 1 | 2;
}

/** The data of a pass with an uploaded loss: the targets and what the loss reads, under the names it reads them by. */
export function tracedData({ inputs }: TracedLoss, data: readonly PreparedDatum[]): PreparedDatum[] {
  return data.map((datum) => {
    const named = inputs.slice(1).map(({ name }) => [name, lossInput(datum, name).tensor as TensorData]);
    const lossFnInputs = {
      target_tokens: datum.lossFnInputs['target_tokens']!,
      ...Object.fromEntries(named),
    } as Record<string, TensorData>;
    return { ...datum, lossFnInputs };
  });
}
