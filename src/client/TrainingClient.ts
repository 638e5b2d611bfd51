import type * as t from 'io-ts';
import { concatMap, map, type Observable } from 'rxjs';
import type { RendererName } from '../chat/renderers/registry.js';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { Tokenizer } from '../chat/tokenizer/Tokenizer.js';
import type { Datum } from '../wire/datum.js';
import type { AdamParams, OptimizerParams } from '../wire/optimizer.js';
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
import type { RequestType } from './events.js';
import type { Lifecycle } from './session/Lifecycle.js';
import { ModelQueue, type ModelWork } from './training/ModelQueue.js';
import { checkLoss, prepareData, type Pass } from './training/passRequests.js';
import { withoutUndefined, prepare, type Fields, type Input, type RecordType } from '../wire/record.js';
import { SamplingClient, type SamplingClientOptions } from './SamplingClient.js';
import type { SamplingSessions } from './sampling/samplingSessions.js';
import { SavedWeights } from './training/SavedWeights.js';
import type { OpenSession } from './session/Session.js';
import type { OnAccepted, TinkerFuture } from './TinkerFuture.js';

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
    return this.#pass('Forward', data, lossFn, options);
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
    if (isTracedLoss(loss)) return this.#pass('ForwardBackward', data, loss, options);
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
    return this.#start('ForwardBackward', work, options);
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
        const refused = this.#passesSinceStep === 0 ? this.#refusedPass : undefined;
        this.#passesSinceStep = 0;
        this.#refusedPass = undefined;
        if (refused !== undefined) throw nothingToApply(refused);
        if (typeof params !== 'object' || params === null)
          throw new ValidationError('optimizer parameters must be an object');
        // Adam's parameters have no type; those of other families say which.
        const chosen = 'type' in params ? { optimizerParams: params } : { adamParams: params };
        return prepare(OptimStepRequest, { ...chosen, modelId: this.modelId });
      },
      format: { json: OptimStepResponse },
      toResult: (result, seqId) => {
        const { metrics = {} } = result;
        this.#session.connection.events.emit({ type: 'step-end', target: this.modelId, seqId, metrics });
        return result;
      },
    });
  }

  /** Saves weights and optimizer state, to be resumed from. */
  saveState(name: string, options: SaveStateOptions = {}): TinkerFuture<SavedWeights> {
    return this.#save('SaveWeights', 'save_weights', SaveWeightsRequest, SaveWeightsResponse, name, options);
  }

  /** Saves weights to sample from. */
  saveWeightsForSampler(name: string, options: SaveOptions = {}): TinkerFuture<SavedWeights> {
    const codecs = [SaveWeightsForSamplerRequest, SaveWeightsForSamplerResponse] as const;
    return this.#save('SaveWeightsForSampler', 'save_weights_for_sampler', ...codecs, name, options);
  }

  /** Saves weights in Hugging Face layout, to be downloaded. */
  saveWeightsExternal(name: string, options: SaveExternalOptions = {}): TinkerFuture<SavedWeights> {
    const codecs = [SaveWeightsExternalRequest, SaveWeightsExternalResponse] as const;
    return this.#save('SaveWeightsExternal', 'save_weights_external', ...codecs, name, options);
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
        toResult: ({ samplingSessionId }) => {
          if (samplingSessionId === undefined)
            throw new APIResponseValidationError('save_weights_for_sampler returned no sampling_session_id');
          return new SamplingClient(this.#session, this.#lifecycle, samplingSessionId, options);
        },
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
    return this.#operation(options, this.#load(path, false, options), 'checked');
  }

  /**
   * Loads saved weights into this model together with the optimizer's state, to continue a run exactly.
   *
   * @deprecated Make a new client with `createTrainingClientFromStateWithOptimizer` instead.
   */
  loadStateWithOptimizer(path: string, options: LoadOptions = {}): TinkerFuture<LoadWeightsResponse> {
    return this.#operation(options, this.#load(path, true, options), 'checked');
  }

  /** @internal Loads a saved state in turn, as part of a future's work. */
  loading(
    path: string,
    optimizer: boolean,
    options: LoadOptions,
    onAccepted: OnAccepted,
  ): Observable<LoadWeightsResponse> {
    return this.#queue.operation(this.#load(path, optimizer, options), onAccepted);
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

  /** Starts work in this model's order. Remembers whether this client refused a backward pass before anything was sent. */
  #start<A>(
    requestType: RequestType,
    work: (onAccepted: OnAccepted) => Observable<A>,
    options: CallOptions,
    names?: ReadonlySet<string> | 'checked',
  ): TinkerFuture<A> {
    const isBackward = requestType === 'ForwardBackward';
    const counted = (onAccepted: OnAccepted): Observable<A> => {
      try {
        const begun = work(onAccepted);
        if (isBackward) this.#passesSinceStep++;
        return begun;
      } catch (error) {
        if (isBackward) this.#refusedPass = error as Error;
        throw error;
      }
    };
    return this.#lifecycle.start(counted, { requestType, target: this.modelId }, options, names);
  }

  #pass(
    requestType: 'Forward' | 'ForwardBackward',
    data: readonly Datum[],
    loss: LossFnType | TracedLoss,
    options: LossOptions,
  ): TinkerFuture<ForwardBackwardOutput> {
    const forwardOnly = requestType === 'Forward';
    const work = (onAccepted: OnAccepted): Observable<ForwardBackwardOutput> => {
      const prepared = prepareData(data);
      if (typeof loss === 'object' && isTracedLoss(loss)) {
        checkLossData(loss, prepared);
        return this.#queue.tracedPass(forwardOnly, prepared, loss, onAccepted);
      }
      const lossFnConfig = options.lossFnConfig && ({ ...options.lossFnConfig } as LossFnConfig);
      checkLoss(loss, lossFnConfig);
      const pass: Pass = { forwardOnly, data: prepared, lossFn: loss, ...(lossFnConfig && { lossFnConfig }) };
      return this.#queue.pass(pass, onAccepted);
    };
    return this.#start(requestType, work, options, LOSS_OPTIONS);
  }

  #load(path: string, optimizer: boolean, options: LoadOptions): ModelWork<LoadWeightsResponse> {
    return {
      requestType: 'LoadWeights',
      path: 'load_weights',
      json: () => {
        this.#session.connection.secrets.add(options.weightsAccessToken ?? '');
        const fields = { modelId: this.modelId, path: parseTinkerPath(path).path, optimizer };
        return prepare(LoadWeightsRequest, withoutUndefined({ ...fields, ...withoutCallOptions(options) }));
      },
      format: { json: LoadWeightsResponse },
    };
  }

  #save<F extends Fields, A extends { readonly path?: string }>(
    requestType: RequestType,
    path: string,
    request: RecordType<F>,
    response: t.Type<A, unknown>,
    name: string,
    options: SaveStateOptions | SaveExternalOptions,
  ): TinkerFuture<SavedWeights> {
    const fields = { modelId: this.modelId, path: name, ...withoutCallOptions(options) };
    return this.#operation(
      options,
      {
        requestType,
        path,
        json: () => {
          if (typeof name !== 'string' || name === '') throw new ValidationError('a checkpoint needs a name');
          return prepare(request, withoutUndefined(fields) as object as Input<F>);
        },
        format: { json: response },
        toResult: ({ path: saved }, seqId) => {
          if (saved === undefined) throw new APIResponseValidationError(`${path} returned no path`);
          const { events } = this.#session.connection;
          events.emit({ type: 'checkpoint-saved', target: this.modelId, path: saved, seqId });
          return new SavedWeights(saved);
        },
      },
      'checked',
    );
  }

  /** One request, one turn, one result. The request is checked at the call; its number is taken when it is sent. */
  #operation<A, B = A>(
    options: CallOptions,
    work: ModelWork<A, B>,
    names?: ReadonlySet<string> | 'checked',
  ): TinkerFuture<B> {
    return this.#start(work.requestType, (onAccepted) => this.#queue.operation(work, onAccepted), options, names);
  }
}

const LOSS_OPTIONS = optionNames<LossOptions>({ lossFnConfig: true });
const SAMPLER_OPTIONS = optionNames<SamplingClientOptions>({ retry: true, recordStabilityInfo: true });

/** The step would be billed and apply nothing. */
const nothingToApply = (refused: Error): ValidationError =>
  new ValidationError(`there is nothing to apply: the pass before this step was refused (${refused.message})`, {
    cause: refused,
  });

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
