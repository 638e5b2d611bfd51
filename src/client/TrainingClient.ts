import type * as t from 'io-ts';
import { concatMap, map, takeUntil, tap, type Observable } from 'rxjs';
import type { Renderer } from '../chat/renderers/Renderer.js';
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
import { rendererOf, tokenizerOf } from './chat.js';
import { trainingRunConsoleUrl } from './consoleUrls.js';
import {
  backwardData,
  checkLossInputs,
  forwardData,
  runCustomLoss,
  withCustomMetrics,
  type CustomLossFn,
  type LossHandle,
} from './customLoss.js';
import { APIResponseValidationError } from './errors.js';
import type { RequestType } from './events.js';
import { accept, followUp, type Accepted, type Submission } from './followUp.js';
import type { Lifecycle } from './Lifecycle.js';
import { PassSender } from './PassSender.js';
import { defined, prepare } from './prepare.js';
import type { ResultFormat } from './retrieve.js';
import { SamplingClient, type SamplingClientOptions } from './SamplingClient.js';
import type { SamplingSessions } from './samplingSessions.js';
import { SavedWeights } from './SavedWeights.js';
import type { OpenSession } from './Session.js';
import type { FutureProgress, TinkerFuture } from './TinkerFuture.js';
import { checkLoss, checkName, chosenOptimizer, prepareData } from './trainingInput.js';
import { Turnstile } from './Turnstile.js';

export interface LossOptions {
  readonly lossFnConfig?: LossFnConfig;
}
export interface SaveOptions {
  /** Seconds until the checkpoint expires, from an hour to ten years. Default: never. */
  readonly ttlSeconds?: number;
  readonly userMetadata?: Readonly<Record<string, string>>;
}
export interface SaveStateOptions extends SaveOptions {
  /** Replaces a checkpoint of this name. Default false: the name must be new. */
  readonly overwrite?: boolean;
}
export interface SaveExternalOptions {
  readonly ttlSeconds?: number;
  /** At most ten age recipients; every exported file is then encrypted to them. */
  readonly ageEncryptionRecipients?: readonly string[];
}
export interface LoadOptions {
  /** A token of the owner, to load weights of somebody else. */
  readonly weightsAccessToken?: string;
}
/**
 * One model being trained.
 *
 * Calls take their turn when they are made and are sent in that order; waiting for results is not part of a turn, so
 * the next call may be made at once. Gradients add up over `forwardBackward` calls until `optimStep`.
 */
export class TrainingClient {
  readonly modelId: string;
  readonly #session: OpenSession;
  readonly #lifecycle: Lifecycle;
  readonly #samplers: SamplingSessions;
  readonly #passes: PassSender;
  readonly #turns = new Turnstile();
  #lastSeqId = 0;

  /** Made by a ServiceClient. */
  constructor(session: OpenSession, lifecycle: Lifecycle, samplers: SamplingSessions, modelId: string) {
    this.#session = session;
    this.#lifecycle = lifecycle;
    this.#samplers = samplers;
    this.modelId = modelId;
    this.#passes = new PassSender(session, modelId, () => this.#nextSeqId());
  }

  /** The page of this training run in the hosted service's console. */
  get consoleUrl(): string {
    return trainingRunConsoleUrl(this.modelId);
  }

  /** The loss and the logprobs of the data, without gradients. */
  forward(data: readonly Datum[], lossFn: LossFnType, options: LossOptions = {}): TinkerFuture<ForwardBackwardOutput> {
    return this.#pass('Forward', data, lossFn, options);
  }

  /** The loss and the logprobs of the data; gradients are added to those since the last `optimStep`. */
  forwardBackward(
    data: readonly Datum[],
    lossFn: LossFnType,
    options: LossOptions = {},
  ): TinkerFuture<ForwardBackwardOutput> {
    return this.#pass('ForwardBackward', data, lossFn, options);
  }

  /**
   * Gradients of a loss of one's own: a function in closed form, run here between a forward and a backward pass, or a
   * handle of an uploaded loss, run by the server in one pass.
   *
   * The function's turn lasts from forward to backward, so that an `optimStep` called after it lands after it. If it
   * throws, the turn ends, the future fails with a CustomLossError, and later calls run.
   */
  forwardBackwardCustom(data: readonly Datum[], loss: CustomLossFn | LossHandle): TinkerFuture<ForwardBackwardOutput> {
    return typeof loss === 'function' ? this.#customPass(data, loss) : this.#uploadedPass(data, loss);
  }

  /** Applies the gradients. Without parameters: Adam with the protocol's defaults. */
  optimStep(params: AdamParams | OptimizerParams = {}): TinkerFuture<OptimStepResponse> {
    return this.#operation({
      requestType: 'OptimStep',
      path: 'optim_step',
      json: () => prepare(OptimStepRequest, { ...chosenOptimizer(params), modelId: this.modelId }),
      format: { json: OptimStepResponse },
      onResult: ({ metrics = {} }, seqId) =>
        this.#events.emit({ type: 'step-end', target: this.modelId, seqId, metrics }),
    });
  }

  /** Saves weights and optimizer state, to be resumed from. */
  saveState(name: string, options: SaveStateOptions = {}): TinkerFuture<SavedWeights> {
    return this.#save('SaveWeights', 'save_weights', SaveWeightsResponse, () =>
      prepare(SaveWeightsRequest, defined({ modelId: this.modelId, path: checkName(name), ...options })),
    );
  }

  /** Saves weights to sample from. */
  saveWeightsForSampler(name: string, options: SaveOptions = {}): TinkerFuture<SavedWeights> {
    return this.#save('SaveWeightsForSampler', 'save_weights_for_sampler', SaveWeightsForSamplerResponse, () =>
      prepare(SaveWeightsForSamplerRequest, defined({ modelId: this.modelId, path: checkName(name), ...options })),
    );
  }

  /** Saves weights in Hugging Face layout, to be downloaded. */
  saveWeightsExternal(name: string, options: SaveExternalOptions = {}): TinkerFuture<SavedWeights> {
    const { ageEncryptionRecipients, ...rest } = options;
    return this.#save('SaveWeightsExternal', 'save_weights_external', SaveWeightsExternalResponse, () =>
      prepare(
        SaveWeightsExternalRequest,
        defined({
          modelId: this.modelId,
          path: checkName(name),
          ...rest,
          ageEncryptionRecipients: ageEncryptionRecipients && [...ageEncryptionRecipients],
        }),
      ),
    );
  }

  /** A sampling client over the weights as they are at this turn; they are kept as long as the session lives. */
  saveWeightsAndGetSamplingClient(options: SamplingClientOptions = {}): TinkerFuture<SamplingClient> {
    return this.#operation(
      {
        requestType: 'SaveWeightsForSampler',
        path: 'save_weights_for_sampler',
        json: () => prepare(SaveWeightsForSamplerRequest, { modelId: this.modelId }),
        jsonWhenSent: () => ({ sampling_session_seq_id: this.#samplers.nextSeqId() }),
        format: { json: SaveWeightsForSamplerResponse },
      },
      ({ samplingSessionId }) => {
        if (samplingSessionId === undefined)
          throw new APIResponseValidationError('save_weights_for_sampler answered no sampling_session_id');
        return new SamplingClient(this.#session, this.#lifecycle, samplingSessionId, options);
      },
    );
  }

  /** @deprecated Make a new client with `createTrainingClientFromState` instead. */
  loadState(path: string, options: LoadOptions = {}): TinkerFuture<LoadWeightsResponse> {
    return this.#lifecycle.start((progress) => this.loading(path, false, options, progress));
  }

  /** @deprecated Make a new client with `createTrainingClientFromStateWithOptimizer` instead. */
  loadStateWithOptimizer(path: string, options: LoadOptions = {}): TinkerFuture<LoadWeightsResponse> {
    return this.#lifecycle.start((progress) => this.loading(path, true, options, progress));
  }

  /** @internal Loads a saved state in turn, as part of a future's work. */
  loading(
    path: string,
    optimizer: boolean,
    options: LoadOptions,
    progress: FutureProgress,
  ): Observable<LoadWeightsResponse> {
    this.#session.connection.secrets.add(options.weightsAccessToken ?? '');
    const operation: Operation<LoadWeightsResponse> = {
      requestType: 'LoadWeights',
      path: 'load_weights',
      json: () =>
        prepare(
          LoadWeightsRequest,
          defined({ modelId: this.modelId, path: parseTinkerPath(path).path, optimizer, ...options }),
        ),
      format: { json: LoadWeightsResponse },
    };
    return this.#turn(operation, progress);
  }

  /** What the service knows of this model: its base, its tokenizer, its rank. */
  getInfo(): TinkerFuture<GetInfoResponse> {
    const json = GetInfoRequest.encode({ modelId: this.modelId, type: 'get_info' });
    return this.#lifecycle.start(() =>
      this.#session.connection
        .call({ path: 'get_info', lane: 'training', json }, GetInfoResponse)
        .pipe(map(withoutTokenizerSuffix)),
    );
  }

  /** The tokenizer of this model, as the service names it. */
  getTokenizer(): TinkerFuture<Tokenizer> {
    return this.#lifecycle.start(() =>
      this.getInfo().pipe(concatMap((info) => tokenizerOf(modelName(info), info.modelData.tokenizerId))),
    );
  }

  /** The renderer recommended for this model, or another one by name, over its tokenizer. */
  getRenderer(name?: string): TinkerFuture<Renderer> {
    return this.#lifecycle.start(() =>
      this.getInfo().pipe(concatMap((info) => rendererOf(modelName(info), info.modelData.tokenizerId, name))),
    );
  }

  /** A sampling client over saved weights. */
  createSamplingClient(modelPath: string, options: SamplingClientOptions = {}): TinkerFuture<SamplingClient> {
    return this.#lifecycle.start(() => this.#samplers.create({ modelPath }, options));
  }

  get #events() {
    return this.#session.connection.events;
  }

  #pass(
    requestType: 'Forward' | 'ForwardBackward',
    data: readonly Datum[],
    lossFn: LossFnType,
    options: LossOptions,
  ): TinkerFuture<ForwardBackwardOutput> {
    return this.#lifecycle.start((progress) => {
      const prepared = prepareData(data);
      checkLoss(lossFn, options.lossFnConfig);
      const config = options.lossFnConfig && { ...options.lossFnConfig };
      return this.#passInTurn(this.#passes.submit(requestType, prepared, lossFn, config, progress));
    });
  }

  #uploadedPass(data: readonly Datum[], handle: LossHandle): TinkerFuture<ForwardBackwardOutput> {
    return this.#lifecycle.start((progress) => {
      if (handle.sessionId !== this.#session.id) {
        throw new ValidationError(`the loss ${handle.name} was made in another session (${handle.sessionId})`);
      }
      const prepared = prepareData(data);
      checkLossInputs(handle, prepared);
      const config = { loss_id: handle.lossId };
      return this.#passInTurn(this.#passes.submit('ForwardBackward', prepared, 'custom', config, progress));
    });
  }

  /** Sends a pass when its turn comes and waits for its results outside the turn. */
  #passInTurn(pass: Observable<readonly Accepted[]>): Observable<ForwardBackwardOutput> {
    return this.#turns.take(({ release, commit }) =>
      commit(pass, this.#abandoned).pipe(
        tap(release),
        concatMap((accepted) => this.#passes.results(accepted)),
      ),
    );
  }

  #customPass(data: readonly Datum[], loss: CustomLossFn): TinkerFuture<ForwardBackwardOutput> {
    return this.#lifecycle.start((progress) => {
      const prepared = prepareData(data);
      const targets = forwardData(prepared);
      return this.#turns.take(({ release, commit }) =>
        commit(this.#passes.submit('Forward', targets, 'cross_entropy', undefined, progress), this.#abandoned).pipe(
          concatMap((accepted) => this.#passes.results(accepted)),
          concatMap((forward) => {
            const result = runCustomLoss(loss, prepared, forward);
            const weighted = backwardData(prepared, forward, result);
            const backward = this.#passes.submit('ForwardBackward', weighted, 'cross_entropy', undefined, progress);
            return commit(backward, this.#abandoned).pipe(
              tap(release),
              concatMap((accepted) => this.#passes.results(accepted)),
              map((output) => withCustomMetrics(output, result)),
            );
          }),
        ),
      );
    });
  }

  /** Says of work that was accepted after its caller had gone that it runs on. */
  readonly #abandoned = (accepted: readonly Accepted[]): void => {
    for (const { submission, promise } of accepted) {
      const { requestType, target } = submission;
      const { requestId } = promise;
      this.#events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled: false });
    }
  };

  #save<A extends { readonly path?: string }>(
    requestType: RequestType,
    path: string,
    codec: t.Type<A, unknown>,
    json: () => Json,
  ): TinkerFuture<SavedWeights> {
    return this.#operation(
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
        if (saved === undefined) throw new APIResponseValidationError(`${path} answered no path`);
        return new SavedWeights(saved);
      },
    );
  }

  /** One request, one turn, one result. The request is checked at the call; its number is taken when it is sent. */
  #operation<A, B = A>(
    operation: Operation<A>,
    convert: (result: A) => B = (result) => result as unknown as B,
  ): TinkerFuture<B> {
    return this.#lifecycle.start((progress) => this.#turn(operation, progress).pipe(map(convert)));
  }

  /** @throws ValidationError without taking the turn. */
  #turn<A>(operation: Operation<A>, progress: FutureProgress): Observable<A> {
    const { requestType, path, json, jsonWhenSent = () => ({}), format, onResult } = operation;
    const { connection } = this.#session;
    const body = json();
    return this.#turns.take(({ release, commit }) => {
      const seqId = this.#nextSeqId();
      const submission: Submission = {
        requestType,
        target: this.modelId,
        seqId,
        bytes: 0,
        startedMs: connection.scheduler.now(),
      };
      const response = connection
        .send({ path, lane: 'training', json: { ...body, ...jsonWhenSent(), seq_id: seqId } })
        .pipe(takeUntil(connection.closing));
      const sent = response.pipe(map((answer) => accept(this.#session, submission, answer, progress)));
      return commit(sent, (accepted) => this.#abandoned([accepted])).pipe(
        tap(release),
        concatMap((accepted) => followUp(this.#session, accepted, format)),
        tap((result) => onResult?.(result, seqId)),
      );
    });
  }

  #nextSeqId(): number {
    return ++this.#lastSeqId;
  }
}

/** One request, one turn, one result. */
interface Operation<A> {
  readonly requestType: RequestType;
  readonly path: string;
  /** Made at the call, of what the caller's objects hold then; a mistake in it takes no turn. */
  readonly json: () => Json;
  /** More of it, known only when it is sent. Its own number is one such thing. */
  readonly jsonWhenSent?: () => Json;
  readonly format: ResultFormat<A>;
  readonly onResult?: (result: A, seqId: number) => void;
}

function modelName(info: GetInfoResponse): string {
  const name = info.modelData.modelName ?? info.modelName;
  if (name === undefined) throw new APIResponseValidationError('get_info answered no model name');
  return name;
}

/** `org/model:variant` is tokenized as `org/model`. */
function withoutTokenizerSuffix(info: GetInfoResponse): GetInfoResponse {
  const { tokenizerId } = info.modelData;
  if (tokenizerId === undefined) return info;
  return { ...info, modelData: { ...info.modelData, tokenizerId: tokenizerId.split(':')[0]! } };
}
