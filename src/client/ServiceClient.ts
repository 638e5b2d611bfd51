import { platform } from 'node:os';
import {
  Subscription,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  map,
  of,
  tap,
  type Observable,
} from 'rxjs';
import type { UndiciTransport } from '../transport/undiciTransport.js';
import {
  CreateCustomLossRequest,
  CreateCustomLossResponse,
  type CustomLossGraph,
  type CustomLossInput,
} from '../wire/customLoss.js';
import type { OptimizerConfig } from '../wire/optimizer.js';
import { GetServerCapabilitiesResponse, type FinishStatus } from '../wire/session.js';
import { ValidationError } from '../wire/tinkerError.js';
import { parseTinkerPath } from '../wire/tinkerPath.js';
import { CreateModelRequest, CreateModelResponse } from '../wire/training.js';
import { LoadWeightsRequest, LoadWeightsResponse, type WeightsInfoResponse } from '../wire/weights.js';
import { connect, type ConnectOptions } from './connect.js';
import type { Connection } from './Connection.js';
import { sessionConsoleUrl, sessionsConsoleUrl } from './consoleUrls.js';
import { checkCustomLoss } from './checkCustomLoss.js';
import type { LossHandle } from './customLoss.js';
import type { RequestType, TinkerEvent } from './events.js';
import { accept, followUp } from './followUp.js';
import { Lifecycle } from './Lifecycle.js';
import { logTo, type LogLevel } from './log.js';
import { defined, prepare } from './prepare.js';
import { RestClient, type CopyWeightsOptions } from './RestClient.js';
import type { ResultFormat } from './retrieve.js';
import type { SamplingClient, SamplingClientOptions } from './SamplingClient.js';
import { SamplingSessions, checkSource, type SamplerSource } from './samplingSessions.js';
import { Session, type OpenSession } from './Session.js';
import { Telemetry } from './Telemetry.js';
import type { FutureProgress, TinkerFuture } from './TinkerFuture.js';
import { TrainingClient } from './TrainingClient.js';

export interface ServiceClientOptions extends ConnectOptions {
  /** Default `TINKER_PROJECT_ID`. */
  readonly projectId?: string;
  /** A name for the session, for people. */
  readonly displayName?: string;
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** Default: the comma list in `TINKER_TAGS`. */
  readonly tags?: readonly string[];
  /** Whether to tell the service about failures and waits. Default true, unless `TINKER_TELEMETRY=0`. */
  readonly telemetry?: boolean;
  /** What to print on stderr. Default `TINKER_LOG`, else `warning`: what the service asks to be shown. */
  readonly logLevel?: LogLevel;
}

export interface CreateLoraTrainingClientOptions {
  readonly baseModel: string;
  /** Default 32. */
  readonly rank?: number;
  readonly seed?: number;
  /** Default true. At least one of the three must be. */
  readonly trainMlp?: boolean;
  readonly trainAttn?: boolean;
  readonly trainUnembed?: boolean;
  /** The optimizer family, fixed for the model's life. Default AdamW. */
  readonly optimizer?: OptimizerConfig;
  readonly userMetadata?: Readonly<Record<string, string>>;
}
export interface FromStateOptions {
  /** Default: the base model the weights were trained on. */
  readonly baseModel?: string;
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** A token of the owner, to start from weights of somebody else. */
  readonly weightsAccessToken?: string;
  /** The optimizer family; with the optimizer's state it is the saved one. */
  readonly optimizer?: OptimizerConfig;
}
export interface CustomLossDefinition {
  readonly name: string;
  /** `logprobs` first, then the loss inputs it reads. */
  readonly inputs: readonly CustomLossInput[];
  readonly graph: CustomLossGraph;
}
export interface CloseOptions {
  /** How the session ended. Default `success`. */
  readonly status?: FinishStatus;
  readonly detail?: string;
}

const RANK = 32;

/**
 * The way into the service: makes training and sampling clients, which share its session, its budgets and its events.
 *
 * Constructing it sends nothing. The session is opened by the first call that needs one and kept alive until `close`.
 */
export class ServiceClient {
  readonly #connection: Connection;
  readonly #sockets: UndiciTransport | undefined;
  readonly #lifecycle: Lifecycle;
  readonly #session: Session;
  readonly #options: ServiceClientOptions;
  readonly #beside = new Subscription();
  readonly #losses = new Set<string>();
  #samplers: SamplingSessions | undefined;
  #telemetry: Telemetry | undefined;
  #models = 0;
  #customLosses = 0;
  #closing: TinkerFuture<void> | undefined;

  constructor(options: ServiceClientOptions = {}) {
    const { connection, sockets } = connect(options);
    this.#options = options;
    this.#connection = connection;
    this.#sockets = sockets;
    this.#lifecycle = new Lifecycle(connection.events);
    this.#session = new Session(connection, {
      tags: options.tags ?? environmentTags(),
      userMetadata: options.userMetadata ?? {},
      projectId: this.#projectId,
      displayName: options.displayName,
    });
    this.#beside.add(logTo(connection.events.events$, options.logLevel));
  }

  /** Everything that happens, as it happens. Hot; it never fails and completes after `close`. */
  get events$(): Observable<TinkerEvent> {
    return this.#connection.events.events$;
  }

  /** The session's id, once something needed a session. */
  get sessionId(): string | undefined {
    return this.#session.id;
  }

  /** The page of this session in the hosted service's console. */
  get consoleUrl(): string {
    return this.#session.id === undefined ? sessionsConsoleUrl() : sessionConsoleUrl(this.#session.id);
  }

  /** Which models the service has. Opens no session. */
  getServerCapabilities(): TinkerFuture<GetServerCapabilitiesResponse> {
    return this.#lifecycle.start(() =>
      this.#connection.call(
        { method: 'GET', path: 'get_server_capabilities', lane: 'rest' },
        GetServerCapabilitiesResponse,
      ),
    );
  }

  /** Checkpoints, runs and sessions over this client's connection. Opens no session. */
  get rest(): RestClient {
    return new RestClient({ connection: this.#connection, lifecycle: this.#lifecycle });
  }

  /** A new LoRA model to train. */
  createLoraTrainingClient(options: CreateLoraTrainingClientOptions): TinkerFuture<TrainingClient> {
    const modelSeqId = this.#models++;
    return this.#lifecycle.start((progress) => this.#createModel(modelSeqId, options, progress));
  }

  /** A new model with saved weights and a fresh optimizer. */
  createTrainingClientFromState(path: string, options: FromStateOptions = {}): TinkerFuture<TrainingClient> {
    return this.#fromState(path, false, options);
  }

  /** A new model with saved weights and the saved state of the optimizer: training goes on where it was. */
  createTrainingClientFromStateWithOptimizer(
    path: string,
    options: Omit<FromStateOptions, 'optimizer'> = {},
  ): TinkerFuture<TrainingClient> {
    return this.#fromState(path, true, options);
  }

  /** Samples from a base model or from saved weights. */
  createSamplingClient(options: SamplerSource & SamplingClientOptions): TinkerFuture<SamplingClient> {
    const { baseModel, modelPath, ...rest } = options;
    return this.#lifecycle.start(() => {
      const source = defined({ baseModel, modelPath });
      checkSource(source);
      return this.#open().pipe(concatMap(({ samplers }) => samplers.create(source, rest)));
    });
  }

  /** Uploads a loss as a graph, to be run by the server. A session takes each loss once. */
  createCustomLoss({ name, inputs, graph }: CustomLossDefinition): TinkerFuture<LossHandle> {
    return this.#lifecycle.start((progress) => {
      checkCustomLoss(name, inputs, graph);
      return this.#open().pipe(
        concatMap(({ session }) => this.#uploadLoss(session, { name, inputs, graph }, progress)),
      );
    });
  }

  /** Copies a checkpoint into this client's project; the result is the path of the copy. */
  copyWeights(path: string, options: Omit<CopyWeightsOptions, 'destinationProjectId'> = {}): TinkerFuture<string> {
    const projectId = this.#projectId;
    return this.rest.copyWeights(path, {
      ...options,
      ...(projectId === undefined ? {} : { destinationProjectId: projectId }),
    });
  }

  /**
   * Waits for everything under way, says how the session ended, and closes every connection. New calls fail with a
   * ClosedError. A second call is the first one again.
   */
  close({ status = 'success', detail }: CloseOptions = {}): TinkerFuture<void> {
    if (this.#closing !== undefined) return this.#closing;
    const closing = new Lifecycle(this.#connection.events).start<void>(() =>
      concat(this.#lifecycle.whenIdle().pipe(ignoreElements()), this.#end(status, detail)),
    );
    this.#lifecycle.close();
    return (this.#closing = closing);
  }

  /** Like `close`, but cancels everything under way instead of waiting for it. */
  destroy(options: CloseOptions = { status: 'interrupted' }): TinkerFuture<void> {
    this.#lifecycle.cancelAll();
    return this.close(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #projectId(): string | undefined {
    return this.#options.projectId ?? (process.env['TINKER_PROJECT_ID'] || undefined);
  }

  #open(): Observable<{ session: OpenSession; samplers: SamplingSessions }> {
    return this.#session.open().pipe(
      map((session) => {
        this.#samplers ??= new SamplingSessions(session, this.#lifecycle);
        if (this.#telemetry === undefined && telemetryWanted(this.#options.telemetry)) {
          this.#telemetry = new Telemetry(this.#connection, session.id, this.#connection.uuid(), platform());
        }
        return { session, samplers: this.#samplers };
      }),
    );
  }

  #createModel(
    modelSeqId: number,
    options: CreateLoraTrainingClientOptions,
    progress: FutureProgress,
  ): Observable<TrainingClient> {
    const {
      baseModel,
      rank = RANK,
      seed,
      trainMlp = true,
      trainAttn = true,
      trainUnembed = true,
      optimizer,
      userMetadata,
    } = options;
    if (!trainMlp && !trainAttn && !trainUnembed)
      throw new ValidationError('at least one of trainMlp, trainAttn and trainUnembed must be true');
    if (typeof baseModel !== 'string' || baseModel === '') throw new ValidationError('baseModel is missing');
    const loraConfig = defined({ rank, seed, trainMlp, trainAttn, trainUnembed });
    const request = (sessionId: string) =>
      prepare(
        CreateModelRequest,
        defined({ sessionId, modelSeqId, baseModel, loraConfig, optimizerConfig: optimizer, userMetadata }),
      );
    request('');
    return this.#open().pipe(
      concatMap(({ session, samplers }) =>
        this.#submit(
          session,
          'CreateModel',
          'create_model',
          baseModel,
          request(session.id),
          { json: CreateModelResponse },
          progress,
        ).pipe(map(({ modelId }) => new TrainingClient(session, this.#lifecycle, samplers, modelId))),
      ),
    );
  }

  #fromState(path: string, withOptimizer: boolean, options: FromStateOptions): TinkerFuture<TrainingClient> {
    const modelSeqId = this.#models++;
    return this.#lifecycle.start((progress) => {
      parseTinkerPath(path);
      return this.#open().pipe(
        concatMap(({ session, samplers }) =>
          this.#connection.config.createModelViaLoadWeights
            ? this.#loadInOneCall(session, samplers, modelSeqId, path, withOptimizer, options, progress)
            : this.#loadIntoNewModel(modelSeqId, path, withOptimizer, options, progress),
        ),
      );
    });
  }

  #loadInOneCall(
    session: OpenSession,
    samplers: SamplingSessions,
    modelSeqId: number,
    path: string,
    withOptimizer: boolean,
    options: FromStateOptions,
    progress: FutureProgress,
  ): Observable<TrainingClient> {
    const { baseModel, userMetadata, weightsAccessToken, optimizer } = options;
    this.#connection.secrets.add(weightsAccessToken ?? '');
    const modelId = `${session.id}:train:${modelSeqId}`;
    const json = prepare(
      LoadWeightsRequest,
      defined({
        sessionId: session.id,
        modelSeqId,
        baseModel,
        userMetadata,
        path,
        optimizer: withOptimizer,
        optimizerConfig: optimizer,
        weightsAccessToken,
      }),
    );
    return this.#submit(
      session,
      'LoadWeights',
      'load_weights',
      modelId,
      json,
      { json: LoadWeightsResponse },
      progress,
    ).pipe(map(() => new TrainingClient(session, this.#lifecycle, samplers, modelId)));
  }

  #loadIntoNewModel(
    modelSeqId: number,
    path: string,
    withOptimizer: boolean,
    options: FromStateOptions,
    progress: FutureProgress,
  ): Observable<TrainingClient> {
    const { weightsAccessToken } = options;
    return this.#restFor(weightsAccessToken)
      .getWeightsInfoByTinkerPath(path)
      .pipe(
        concatMap((info) => this.#createModel(modelSeqId, modelLike(info, withOptimizer, options), progress)),
        concatMap((client) =>
          client.load(path, withOptimizer, defined({ weightsAccessToken })).pipe(map(() => client)),
        ),
      );
  }

  /** Weights of somebody else are described to their owner's token only. */
  #restFor(weightsAccessToken: string | undefined): RestClient {
    if (weightsAccessToken === undefined) return this.rest;
    const { connection } = connect({
      ...this.#options,
      apiKey: weightsAccessToken,
      ...(this.#sockets === undefined ? {} : { transport: this.#sockets.transport }),
    });
    return new RestClient({ connection, lifecycle: this.#lifecycle });
  }

  #uploadLoss(
    session: OpenSession,
    { name, inputs, graph }: CustomLossDefinition,
    progress: FutureProgress,
  ): Observable<LossHandle> {
    if (!this.#connection.config.customLossServerSide) {
      throw new ValidationError(
        'this service does not run custom losses; pass a function to forwardBackwardCustom instead',
      );
    }
    const key = JSON.stringify([inputs, graph]);
    if (this.#losses.has(key))
      throw new ValidationError(`this session has the loss ${name} already: use its handle again`);
    this.#losses.add(key);
    const json = prepare(CreateCustomLossRequest, {
      sessionId: session.id,
      customLossSeqId: this.#customLosses++,
      name,
      inputs: [...inputs],
      graph: graph as never,
    });
    return this.#submit(
      session,
      'CreateCustomLoss',
      'create_custom_loss',
      name,
      json,
      { json: CreateCustomLossResponse },
      progress,
    ).pipe(
      tap({ error: () => this.#losses.delete(key) }),
      map(({ lossId }) => ({ name, inputs, sessionId: session.id, lossId })),
    );
  }

  #submit<A>(
    session: OpenSession,
    requestType: RequestType,
    path: string,
    target: string,
    json: object,
    format: ResultFormat<A>,
    progress: FutureProgress,
  ): Observable<A> {
    const submission = { requestType, target, seqId: undefined, bytes: 0, startedMs: this.#connection.scheduler.now() };
    return accept(session, submission, this.#connection.send({ path, lane: 'training', json }), progress).pipe(
      concatMap((accepted) => followUp(session, accepted, format)),
    );
  }

  /** Each step runs whether or not the one before it worked: closing must not fail for a server that has gone away. */
  #end(status: FinishStatus, detail: string | undefined): Observable<void> {
    const quietly = (step: Observable<unknown>): Observable<never> =>
      step.pipe(
        ignoreElements(),
        catchError(() => EMPTY),
      );
    return concat(
      quietly(this.#session.finish(status, detail)),
      defer(() => {
        this.#session.stop();
        this.#connection.close();
        return quietly(this.#telemetry?.drain() ?? EMPTY);
      }),
      quietly(defer(() => from(this.#sockets?.close() ?? []))),
      defer(() => {
        this.#connection.events.complete();
        this.#beside.unsubscribe();
        return of(undefined);
      }),
    );
  }
}

/** The options that make a new model fit saved weights. */
function modelLike(
  info: WeightsInfoResponse,
  withOptimizer: boolean,
  options: FromStateOptions,
): CreateLoraTrainingClientOptions {
  const { baseModel = info.baseModel, userMetadata, optimizer } = options;
  if (!info.isLora || info.loraRank === undefined)
    throw new ValidationError('these are not LoRA weights: a training client cannot start from them');
  const { loraRank: rank, trainMlp, trainAttn, trainUnembed } = info;
  return defined({
    baseModel,
    rank,
    trainMlp,
    trainAttn,
    trainUnembed,
    userMetadata,
    optimizer: withOptimizer ? info.optimizerConfig : optimizer,
  });
}

const environmentTags = (): string[] => process.env['TINKER_TAGS']?.split(',') ?? [];

const telemetryWanted = (option: boolean | undefined): boolean =>
  option ?? ['1', 'true', 'yes', 'on'].includes((process.env['TINKER_TELEMETRY'] ?? '1').toLowerCase());
