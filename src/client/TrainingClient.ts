import type * as t from 'io-ts';
import { concatMap, map, type Observable } from 'rxjs';
import type { RendererName } from '../chat/renderers/registry.js';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { Tokenizer } from '../chat/tokenizer/Tokenizer.js';
import type { Datum } from '../wire/datum.js';
import type { AdamParams, OptimizerParams } from '../wire/optimizer.js';
import type { Json } from '../wire/record.js';
import { ValidationError } from '../wire/tinkerError.js';
import { parseTinkerPath } from '../wire/tinkerPath.js';
import {
  GetInfoRequest,
  GetInfoResponse,
  OptimStepRequest,
  OptimStepResponse,
  type ForwardBackwardOutput,
  type LossFnConfig,
  type LossFnConfigs,
  type LossFnType,
} from '../wire/training.js';
import {
  LoadWeightsRequest,
  LoadWeightsResponse,
  SaveWeightsExternalRequest,
  SaveWeightsExternalResponse,
  SaveWeightsForSamplerRequest,
  SaveWeightsForSamplerResponse,
  SaveWeightsRequest,
  SaveWeightsResponse,
} from '../wire/weights.js';
import { optionNames, withoutCallOptions, type CallOptions } from './CallOptions.js';
import { rendererOf, tokenizerOf } from './chat.js';
import { trainingRunConsoleUrl } from './rest/consoleUrls.js';
import { checkLossData } from '../losses/evaluateLoss.js';
import { isTracedLoss, type TracedLoss } from '../losses/TracedLoss.js';
import { checkLossInputs, type CustomLossFn, type LossHandle } from './training/customLoss.js';
import { APIResponseValidationError } from './errors.js';
import type { RequestType, WorkKind } from './events.js';
import type { Lifecycle } from './session/Lifecycle.js';
import { ModelQueue, type ModelWork } from './training/ModelQueue.js';
import type { Pass } from './training/passRequests.js';
import { withoutUndefined, prepare } from '../wire/record.js';
import { SamplingClient, type SamplingClientOptions } from './SamplingClient.js';
import type { SamplingSessions } from './sampling/samplingSessions.js';
import { SavedWeights } from './training/SavedWeights.js';
import type { OpenSession } from './session/Session.js';
import type { OnAccepted, TinkerFuture } from './TinkerFuture.js';
import { checkLoss, checkName, chosenOptimizer, prepareData } from './training/trainingInput.js';

/** Options of a pass; which config there is depends on the loss. */
export interface LossOptions<L extends LossFnType = LossFnType> extends CallOptions {
  /** What the loss takes besides the data, such as `clip_low_threshold`. Default: the service's own values. */
  readonly lossFnConfig?: LossFnConfigs[L];
}
/** Options of every call that saves weights. */
export interface SaveOptions extends CallOptions {
  /** Seconds until the checkpoint expires, from an hour to ten years. Default: never. */
  readonly ttlSeconds?: number;
  /** Kept with the checkpoint, for people and searches. Default: none. */
  readonly userMetadata?: Readonly<Record<string, string>>;
}
/** Options of `saveState`. */
export interface SaveStateOptions extends SaveOptions {
  /** Replaces a checkpoint of this name. Default false: the name must be new. */
  readonly overwrite?: boolean;
}
/** Options of `saveWeightsExternal`. */
export interface SaveExternalOptions extends CallOptions {
  /** Seconds until the checkpoint expires, from an hour to ten years. Default: never. */
  readonly ttlSeconds?: number;
  /** At most ten age recipients; every exported file is then encrypted to them. */
  readonly ageEncryptionRecipients?: readonly string[];
}
/** Options of `loadState` and `loadStateWithOptimizer`. */
export interface LoadOptions extends CallOptions {
  /** The owner's token, to load another user's weights. Default: none is needed for your own. */
  readonly weightsAccessToken?: string;
}
/**
 * One model being trained.
 *
 * Calls take their turn when they are made and are sent in that order; waiting for results is not part of a turn, so
 * the next call may be made at once. Gradients add up over `forwardBackward` calls until `optimStep`. Typed arrays in the
 * data are not copied: leave them as they are until the call is settled.
 */
export class TrainingClient {
  /** The service's id of this model: its training run. */
  readonly modelId: string;
  readonly #session: OpenSession;
  readonly #lifecycle: Lifecycle;
  readonly #samplers: SamplingSessions;
  readonly #queue: ModelQueue;
  /** Backward passes that were taken on since the last step, and the last one that this client refused. */
  #passesSinceStep = 0;
  #refusedPass: Error | undefined;

  /** Made by a ServiceClient. */
  constructor(session: OpenSession, lifecycle: Lifecycle, samplers: SamplingSessions, modelId: string) {
    this.#session = session;
    this.#lifecycle = lifecycle;
    this.#samplers = samplers;
    this.modelId = modelId;
    this.#queue = new ModelQueue(session, modelId);
  }

  /** The page of this training run in the hosted service's console. */
  get consoleUrl(): string {
    return trainingRunConsoleUrl(this.modelId);
  }

  /** The loss and the logprobs of the data, without gradients. */
  forward<L extends LossFnType | TracedLoss>(
    data: readonly Datum[],
    lossFn: L,
    options: LossOptions<Extract<L, LossFnType>> = {},
  ): TinkerFuture<ForwardBackwardOutput> {
    return isTracedLoss(lossFn)
      ? this.#traced('Forward', data, lossFn, options)
      : this.#pass('Forward', data, lossFn, options);
  }

  /** The loss and the logprobs of the data; gradients are added to those since the last `optimStep`. */
  forwardBackward<L extends LossFnType>(
    data: readonly Datum[],
    lossFn: L,
    options: LossOptions<L> = {},
  ): TinkerFuture<ForwardBackwardOutput> {
    return this.#pass('ForwardBackward', data, lossFn, options);
  }

  /**
   * Gradients of a custom loss: one recorded by `defineLoss` (of `tinker-rx/losses`), uploaded once and run by the server in one pass if supported; a
   * function in closed form, run here between a forward and a backward pass; or a handle of an uploaded loss.
   *
   * The function's turn lasts from forward to backward, so that an `optimStep` called after it lands after it. If it
   * throws, the turn ends, the future fails with a CustomLossError, and later calls run.
   */
  forwardBackwardCustom(
    data: readonly Datum[],
    loss: CustomLossFn | LossHandle | TracedLoss,
    options: CallOptions = {},
  ): TinkerFuture<ForwardBackwardOutput> {
    if (isTracedLoss(loss)) return this.#traced('ForwardBackward', data, loss, options);
    const work = (onAccepted: OnAccepted): Observable<ForwardBackwardOutput> => {
      const prepared = prepareData(data);
      if (typeof loss === 'function') return this.#queue.customPass(prepared, loss, onAccepted);
      if (typeof loss !== 'object' || loss === null)
        throw new ValidationError('loss must be a function, a traced loss, or the handle of an uploaded one');
      if (loss.sessionId !== this.#session.id) {
        throw new ValidationError(`the loss ${loss.name} was made in another session (${loss.sessionId})`);
      }
      checkLossInputs(loss, prepared);
      const lossFnConfig = { loss_id: loss.lossId };
      const pass: Pass = { forwardOnly: false, data: prepared, lossFn: 'custom', lossFnConfig };
      return this.#queue.pass(pass, onAccepted);
    };
    return this.#startBackward(work, options);
  }

  /**
   * Applies the gradients. Without parameters: Adam with the protocol's defaults. Fails without being sent where the client itself refused the only
   * pass since the last step; a pass that the service refuses later is not known here, and its step still runs and is billed.
   */
  optimStep(params: AdamParams | OptimizerParams = {}, options: CallOptions = {}): TinkerFuture<OptimStepResponse> {
    return this.#operation(options, {
      requestType: 'OptimStep',
      path: 'optim_step',
      json: () => {
        this.#refuseEmptyStep();
        const chosen = chosenOptimizer(params);
        return prepare(OptimStepRequest, { ...chosen, modelId: this.modelId });
      },
      format: { json: OptimStepResponse },
      onResult: ({ metrics = {} }, seqId) =>
        this.#events.emit({ type: 'step-end', target: this.modelId, seqId, metrics }),
    });
  }

  /** Saves weights and optimizer state, to be resumed from. */
  saveState(name: string, options: SaveStateOptions = {}): TinkerFuture<SavedWeights> {
    const rest = withoutCallOptions(options);
    return this.#save(options, 'SaveWeights', 'save_weights', SaveWeightsResponse, () =>
      prepare(SaveWeightsRequest, withoutUndefined({ modelId: this.modelId, path: checkName(name), ...rest })),
    );
  }

  /** Saves weights to sample from. */
  saveWeightsForSampler(name: string, options: SaveOptions = {}): TinkerFuture<SavedWeights> {
    const rest = withoutCallOptions(options);
    return this.#save(options, 'SaveWeightsForSampler', 'save_weights_for_sampler', SaveWeightsForSamplerResponse, () =>
      prepare(
        SaveWeightsForSamplerRequest,
        withoutUndefined({ modelId: this.modelId, path: checkName(name), ...rest }),
      ),
    );
  }

  /** Saves weights in Hugging Face layout, to be downloaded. */
  saveWeightsExternal(name: string, options: SaveExternalOptions = {}): TinkerFuture<SavedWeights> {
    const { ageEncryptionRecipients, ...rest } = withoutCallOptions(options);
    return this.#save(options, 'SaveWeightsExternal', 'save_weights_external', SaveWeightsExternalResponse, () => {
      return prepare(
        SaveWeightsExternalRequest,
        withoutUndefined({
          modelId: this.modelId,
          path: checkName(name),
          ...rest,
          ageEncryptionRecipients: ageEncryptionRecipients && [...ageEncryptionRecipients],
        }),
      );
    });
  }

  /** A sampling client over the weights as they are at this turn; they are kept as long as the session lives. */
  saveWeightsAndGetSamplingClient(options: SamplingClientOptions & CallOptions = {}): TinkerFuture<SamplingClient> {
    return this.#operation(
      options,
      {
        requestType: 'SaveWeightsForSampler',
        path: 'save_weights_for_sampler',
        json: () => prepare(SaveWeightsForSamplerRequest, { modelId: this.modelId }),
        jsonWhenSent: () => ({ sampling_session_seq_id: this.#samplers.nextSeqId() }),
        format: { json: SaveWeightsForSamplerResponse },
      },
      ({ samplingSessionId }) => {
        if (samplingSessionId === undefined)
          throw new APIResponseValidationError('save_weights_for_sampler returned no sampling_session_id');
        return new SamplingClient(this.#session, this.#lifecycle, samplingSessionId, options);
      },
      SAMPLER_OPTIONS,
    );
  }

  /**
   * Loads saved weights into this model; the optimizer state is reset.
   *
   * @deprecated Make a new client with `createTrainingClientFromState` instead.
   */
  loadState(path: string, options: LoadOptions = {}): TinkerFuture<LoadWeightsResponse> {
    const load = (onAccepted: OnAccepted): Observable<LoadWeightsResponse> =>
      this.loading(path, false, options, onAccepted);
    return this.#lifecycle.start(load, this.#kind('LoadWeights'), options, 'checked');
  }

  /**
   * Loads saved weights into this model together with the optimizer's state, to continue a run exactly.
   *
   * @deprecated Make a new client with `createTrainingClientFromStateWithOptimizer` instead.
   */
  loadStateWithOptimizer(path: string, options: LoadOptions = {}): TinkerFuture<LoadWeightsResponse> {
    const load = (onAccepted: OnAccepted): Observable<LoadWeightsResponse> =>
      this.loading(path, true, options, onAccepted);
    return this.#lifecycle.start(load, this.#kind('LoadWeights'), options, 'checked');
  }

  /** @internal Loads a saved state in turn, as part of a future's work. */
  loading(
    path: string,
    optimizer: boolean,
    options: LoadOptions,
    onAccepted: OnAccepted,
  ): Observable<LoadWeightsResponse> {
    this.#session.connection.secrets.add(options.weightsAccessToken ?? '');
    const operation: ModelWork<LoadWeightsResponse> = {
      requestType: 'LoadWeights',
      path: 'load_weights',
      json: () =>
        prepare(
          LoadWeightsRequest,
          withoutUndefined({
            modelId: this.modelId,
            path: parseTinkerPath(path).path,
            optimizer,
            ...withoutCallOptions(options),
          }),
        ),
      format: { json: LoadWeightsResponse },
    };
    return this.#queue.operation(operation, onAccepted);
  }

  /** What the service knows about this model: its base model, tokenizer and rank. */
  getInfo(options: CallOptions = {}): TinkerFuture<GetInfoResponse> {
    return this.#lifecycle.start(() => this.#info(), undefined, options);
  }

  /** The tokenizer of this model, as the service names it. */
  getTokenizer(options: CallOptions = {}): TinkerFuture<Tokenizer> {
    const tokenizer = (): Observable<Tokenizer> =>
      this.#info().pipe(concatMap((info) => tokenizerOf(modelName(info), info.modelData.tokenizerId)));
    return this.#lifecycle.start(tokenizer, undefined, options);
  }

  /** The renderer recommended for this model, or another one by name, over its tokenizer. */
  getRenderer(name?: RendererName, options: CallOptions = {}): TinkerFuture<Renderer> {
    const renderer = (): Observable<Renderer> =>
      this.#info().pipe(concatMap((info) => rendererOf(modelName(info), info.modelData.tokenizerId, name)));
    return this.#lifecycle.start(renderer, undefined, options);
  }

  /** A sampling client over saved weights. */
  createSamplingClient(
    modelPath: string,
    options: SamplingClientOptions & CallOptions = {},
  ): TinkerFuture<SamplingClient> {
    const create = (): Observable<SamplingClient> => this.#samplers.create({ modelPath }, options);
    return this.#lifecycle.start(create, undefined, options, SAMPLER_OPTIONS);
  }

  #info(): Observable<GetInfoResponse> {
    const json = GetInfoRequest.encode({ modelId: this.modelId, type: 'get_info' });
    return this.#session.connection
      .call({ path: 'get_info', lane: 'training', json }, GetInfoResponse)
      .pipe(map(withoutTokenizerSuffix));
  }

  #kind(requestType: RequestType): WorkKind {
    return { requestType, target: this.modelId };
  }

  /** Starts a backward pass, and remembers whether this client refused it before anything was sent. */
  #startBackward(
    work: (onAccepted: OnAccepted) => Observable<ForwardBackwardOutput>,
    options: CallOptions,
    names?: ReadonlySet<string>,
  ): TinkerFuture<ForwardBackwardOutput> {
    const remembering = (onAccepted: OnAccepted): Observable<ForwardBackwardOutput> => {
      try {
        const pass = work(onAccepted);
        this.#passesSinceStep++;
        return pass;
      } catch (error) {
        this.#refusedPass = error as Error;
        throw error;
      }
    };
    return this.#lifecycle.start(remembering, this.#kind('ForwardBackward'), options, names);
  }

  /** @throws ValidationError where the only pass since the last step was refused: the step would be billed and apply nothing. */
  #refuseEmptyStep(): void {
    const refused = this.#passesSinceStep === 0 ? this.#refusedPass : undefined;
    this.#passesSinceStep = 0;
    this.#refusedPass = undefined;
    if (refused !== undefined)
      throw new ValidationError(
        `there is nothing to apply: the pass before this step was refused (${refused.message})`,
        {
          cause: refused,
        },
      );
  }

  get #events() {
    return this.#session.connection.events;
  }

  #traced(
    requestType: 'Forward' | 'ForwardBackward',
    data: readonly Datum[],
    loss: TracedLoss,
    options: CallOptions,
  ): TinkerFuture<ForwardBackwardOutput> {
    const work = (onAccepted: OnAccepted): Observable<ForwardBackwardOutput> => {
      const prepared = prepareData(data);
      checkLossData(loss, prepared);
      return this.#queue.tracedPass(requestType === 'Forward', prepared, loss, onAccepted);
    };
    if (requestType === 'ForwardBackward') return this.#startBackward(work, options, LOSS_OPTIONS);
    return this.#lifecycle.start(work, this.#kind(requestType), options, LOSS_OPTIONS);
  }

  #pass(
    requestType: 'Forward' | 'ForwardBackward',
    data: readonly Datum[],
    lossFn: LossFnType,
    options: LossOptions,
  ): TinkerFuture<ForwardBackwardOutput> {
    const work = (onAccepted: OnAccepted): Observable<ForwardBackwardOutput> => {
      const prepared = prepareData(data);
      const lossFnConfig = options.lossFnConfig && ({ ...options.lossFnConfig } as LossFnConfig);
      checkLoss(lossFn, lossFnConfig);
      const forwardOnly = requestType === 'Forward';
      const pass: Pass = { forwardOnly, data: prepared, lossFn, ...(lossFnConfig && { lossFnConfig }) };
      return this.#queue.pass(pass, onAccepted);
    };
    if (requestType === 'ForwardBackward') return this.#startBackward(work, options, LOSS_OPTIONS);
    return this.#lifecycle.start(work, this.#kind(requestType), options, LOSS_OPTIONS);
  }

  #save<A extends { readonly path?: string }>(
    call: CallOptions,
    requestType: RequestType,
    path: string,
    codec: t.Type<A, unknown>,
    json: () => Json,
  ): TinkerFuture<SavedWeights> {
    return this.#operation(
      call,
      {
        requestType,
        path,
        json,
        format: { json: codec },
        onResult: ({ path: saved }, seqId) => {
          if (saved !== undefined)
            this.#events.emit({ type: 'checkpoint-saved', target: this.modelId, path: saved, seqId });
        },
      },
      ({ path: saved }) => {
        if (saved === undefined) throw new APIResponseValidationError(`${path} returned no path`);
        return new SavedWeights(saved);
      },
      'checked',
    );
  }

  /** One request, one turn, one result. The request is checked at the call; its number is taken when it is sent. */
  #operation<A, B = A>(
    call: CallOptions,
    operation: ModelWork<A>,
    convert: (result: A) => B = (result) => result as unknown as B,
    names?: ReadonlySet<string> | 'checked',
  ): TinkerFuture<B> {
    return this.#lifecycle.start(
      (onAccepted) => this.#queue.operation(operation, onAccepted).pipe(map(convert)),
      this.#kind(operation.requestType),
      call,
      names,
    );
  }
}

const LOSS_OPTIONS = optionNames<LossOptions>({ lossFnConfig: true });
const SAMPLER_OPTIONS = optionNames<SamplingClientOptions>({ retry: true, recordStabilityInfo: true });

function modelName(info: GetInfoResponse): string {
  const name = info.modelData.modelName ?? info.modelName;
  if (name === undefined) throw new APIResponseValidationError('get_info returned no model name');
  return name;
}

/** `org/model:variant` is tokenized as `org/model`. */
function withoutTokenizerSuffix(info: GetInfoResponse): GetInfoResponse {
  const { tokenizerId } = info.modelData;
  if (tokenizerId === undefined) return info;
  return { ...info, modelData: { ...info.modelData, tokenizerId: tokenizerId.split(':')[0]! } };
}
