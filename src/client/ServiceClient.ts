import {
  Subscription,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  from,
  ignoreElements,
  map,
  of,
  type Observable,
} from 'rxjs';
import { platformName, processUuid } from '../transport/system.js';
import type { SocketTransport } from '../transport/socketTransport.js';
import { FinishSessionRequest, GetServerCapabilitiesResponse, type FinishStatus } from '../wire/session.js';
import { refuseUnknownKeys } from '../wire/record.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { WeightsInfoResponse } from '../wire/weights.js';
import { parseTinkerPath } from '../wire/tinkerPath.js';
import { connect, type ConnectOptions } from './connection/connect.js';
import type { Call, Connection } from './connection/Connection.js';
import { optionNames, type CallOptions } from './CallOptions.js';
import { sessionConsoleUrl, sessionsConsoleUrl } from './rest/consoleUrls.js';
import { checkCustomLoss } from '../losses/checkCustomLoss.js';
import type { CustomLossDefinition, LossHandle } from './training/customLoss.js';
import type { TinkerEvent } from './events.js';
import { Lifecycle } from './session/Lifecycle.js';
import { logTo } from './session/log.js';
import { prepare, withoutUndefined } from '../wire/record.js';
import { RestClient, type CopyWeightsOptions } from './RestClient.js';
import type { SamplingClient, SamplingClientOptions } from './SamplingClient.js';
import { SamplingSessions, checkSource, type SamplerSource } from './sampling/samplingSessions.js';
import { Session } from './session/Session.js';
import { Telemetry } from './session/Telemetry.js';
import type { TinkerFuture } from './TinkerFuture.js';
import type { TrainingClient } from './TrainingClient.js';
import type { PendingWork } from './session/pending.js';
import {
  TrainingModels,
  type CreateLoraTrainingClientOptions,
  type FromStateOptions,
  type Opened,
  type SavedState,
} from './training/TrainingModels.js';

/** Options of a {@link ServiceClient}. */
export interface ServiceClientOptions extends ConnectOptions {
  /** The project that sessions, runs and checkpoints belong to. Default `TINKER_PROJECT_ID`. */
  readonly projectId?: string;
  /** A name for the session, for people. Default: none. */
  readonly displayName?: string;
  /** Kept with the session, for people and searches. Default: none. */
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** Labels of the session. Default: the comma list in `TINKER_TAGS`. */
  readonly tags?: readonly string[];
  /** Whether to tell the service about failures and waits. Default true, unless `TINKER_TELEMETRY=0`. */
  readonly telemetry?: boolean;
}

/** Options of `ServiceClient.close`. */
export interface CloseOptions {
  /** How the session ended. Default `success`. */
  readonly status?: FinishStatus;
  /** More about how it ended, for people. Default: none. */
  readonly detail?: string;
  /**
   * Milliseconds to wait for the next pending call to finish. When none does, the rest fails with a ClosedError. Default
   * 3,600,000, an hour.
   */
  readonly timeoutMs?: number;
}

/**
 * The way into the service: makes training and sampling clients, which share its session, its budgets and its events.
 *
 * Constructing it sends nothing. The session is opened by the first call that needs one and kept alive until `close`.
 */
export class ServiceClient {
  readonly #connection: Connection;
  readonly #sockets: SocketTransport | undefined;
  readonly #lifecycle: Lifecycle;
  readonly #session: Session;
  readonly #options: ServiceClientOptions;
  readonly #beside = new Subscription();
  readonly #models: TrainingModels;
  #samplers: SamplingSessions | undefined;
  #telemetry: Telemetry | undefined;
  #closing: TinkerFuture<void> | undefined;

  constructor(options: ServiceClientOptions = {}) {
    const { connection, sockets } = connect(options);
    this.#options = options;
    this.#connection = connection;
    this.#sockets = sockets;
    this.#lifecycle = new Lifecycle(connection);
    this.#session = new Session(connection, {
      tags: options.tags ?? environmentTags(),
      userMetadata: options.userMetadata ?? {},
      projectId: this.#projectId,
      displayName: options.displayName,
    });
    this.#models = new TrainingModels(this.#lifecycle, (path, token) => this.#weightsInfo(path, token));
    this.#beside.add(logTo(connection.events.notable, options.logLevel));
  }

  /** Everything that happens, as it happens. Hot; it never fails and completes after `close`. */
  get events$(): Observable<TinkerEvent> {
    return this.#connection.events.events$;
  }

  /**
   * The pending work of this client and those it made: every call that has not ended, and how much of the shared budgets is
   * in use. It is computed when asked for, by a walk over the pending calls.
   */
  pending(): PendingWork {
    return { calls: this.#lifecycle.calls(), budgets: this.#session.budgets };
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
  getServerCapabilities(options: CallOptions = {}): TinkerFuture<GetServerCapabilitiesResponse> {
    const call: Call = { method: 'GET', path: 'get_server_capabilities', lane: 'rest' };
    return this.#lifecycle.start(() => this.#connection.call(call, GetServerCapabilitiesResponse), undefined, options);
  }

  /** Checkpoints, runs and sessions over this client's connection. Opens no session. */
  get rest(): RestClient {
    return new RestClient({ connection: this.#connection, lifecycle: this.#lifecycle });
  }

  /** A new LoRA model to train. */
  createLoraTrainingClient(options: CreateLoraTrainingClientOptions): TinkerFuture<TrainingClient> {
    const modelSeqId = this.#models.nextSeqId();
    return this.#lifecycle.start(
      (onAccepted) => this.#models.create(this.#open(), modelSeqId, options ?? {}, onAccepted),
      { requestType: 'CreateModel', target: targetName(options?.baseModel) },
      options,
      LORA_OPTIONS,
    );
  }

  /** A new model with saved weights and a fresh optimizer. */
  createTrainingClientFromState(path: string, options: FromStateOptions = {}): TinkerFuture<TrainingClient> {
    return this.#fromState({ path, withOptimizer: false }, options);
  }

  /** A new model with saved weights and the saved state of the optimizer: training continues where it was. */
  createTrainingClientFromStateWithOptimizer(
    path: string,
    options: Omit<FromStateOptions, 'optimizer'> = {},
  ): TinkerFuture<TrainingClient> {
    return this.#fromState({ path, withOptimizer: true }, options);
  }

  /** Samples from a base model or from saved weights. */
  createSamplingClient(options: SamplerSource & SamplingClientOptions & CallOptions): TinkerFuture<SamplingClient> {
    const work = (): Observable<SamplingClient> => {
      const { baseModel, modelPath, ...rest } = options ?? {};
      const source = withoutUndefined({ baseModel, modelPath });
      checkSource(source);
      return this.#open().pipe(concatMap(({ samplers }) => samplers.create(source, rest)));
    };
    return this.#lifecycle.start(work, undefined, options, SAMPLER_OPTIONS);
  }

  /** Uploads a loss as a graph, to be run by the server. A session takes each loss once. */
  createCustomLoss(definition: CustomLossDefinition & CallOptions): TinkerFuture<LossHandle> {
    return this.#lifecycle.start(
      (onAccepted) => {
        const { name, inputs, graph } = definition ?? {};
        checkCustomLoss(name, inputs, graph);
        return this.#open().pipe(
          concatMap(({ session }) => session.losses.upload(session, { name, inputs, graph }, onAccepted)),
        );
      },
      { requestType: 'CreateCustomLoss', target: targetName(definition?.name) },
      definition,
      LOSS_OPTIONS,
    );
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
   * Waits for all pending calls, tells the service how the session ended, and closes every connection. New calls fail with a
   * ClosedError. A second call returns the same future.
   */
  close(options: CloseOptions = {}): TinkerFuture<void> {
    if (this.#closing !== undefined) return this.#closing;
    const closing = new Lifecycle(this.#connection).start<void>(() => {
      checkCloseOptions(options);
      const { status = 'success', detail, timeoutMs } = options;
      this.#lifecycle.close();
      return concat(this.#lifecycle.whenIdle(timeoutMs).pipe(ignoreElements()), this.#end(status, detail));
    });
    // Refused options close nothing.
    if (this.#lifecycle.closed) this.#closing = closing;
    return closing;
  }

  /** Like `close`, but cancels all pending calls instead of waiting for them. */
  destroy(options: CloseOptions = { status: 'interrupted' }): TinkerFuture<void> {
    // Closed first: a call that is made by an error handler, while the others are cancelled, must not start.
    const closed = this.close(options);
    if (this.#lifecycle.closed) this.#lifecycle.cancelAll();
    return closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #projectId(): string | undefined {
    return this.#options.projectId ?? (process.env['TINKER_PROJECT_ID'] || undefined);
  }

  #fromState(state: SavedState, options: FromStateOptions): TinkerFuture<TrainingClient> {
    const modelSeqId = this.#models.nextSeqId();
    return this.#lifecycle.start(
      (onAccepted) => {
        parseTinkerPath(state.path);
        return this.#models.fromState(this.#open(), modelSeqId, state, options, onAccepted);
      },
      { requestType: 'LoadWeights', target: targetName(state.path) },
      options,
      FROM_STATE_OPTIONS,
    );
  }

  /** Another user's weights are described only to their owner's token: that call has its own short-lived connection. */
  #weightsInfo(path: string, weightsAccessToken: string | undefined): Observable<WeightsInfoResponse> {
    if (weightsAccessToken === undefined) return this.rest.weightsInfo(path);
    return defer(() => {
      const { connection } = connect({
        ...this.#options,
        apiKey: weightsAccessToken,
        events: this.#connection.events,
        ...(this.#sockets === undefined ? {} : { transport: this.#sockets.transport }),
      });
      const rest = new RestClient({ connection, lifecycle: this.#lifecycle });
      return rest.weightsInfo(path).pipe(finalize(() => connection.close()));
    });
  }

  #open(): Observable<Opened> {
    return this.#session.open().pipe(
      map((session) => {
        this.#samplers ??= new SamplingSessions(session, this.#lifecycle);
        if (this.#telemetry === undefined && telemetryWanted(this.#options.telemetry)) {
          this.#telemetry = new Telemetry(this.#connection, session.id, processUuid(), platformName());
        }
        return { session, samplers: this.#samplers };
      }),
    );
  }

  /** Each step runs even if the one before it failed: closing must work although the server is gone. */
  #end(status: FinishStatus, detail: string | undefined): Observable<void> {
    const quietly = (step: Observable<unknown>): Observable<never> =>
      step.pipe(
        ignoreElements(),
        catchError(() => EMPTY),
      );
    return concat(
      quietly(this.#session.endCancels()),
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

/** What a call is about, for events; callers without types may leave it out. */
const targetName = (name: unknown): string => (typeof name === 'string' ? name : 'unknown');

const LORA_OPTIONS = optionNames<CreateLoraTrainingClientOptions>({
  baseModel: true,
  rank: true,
  seed: true,
  trainMlp: true,
  trainAttn: true,
  trainUnembed: true,
  optimizer: true,
  userMetadata: true,
});
const FROM_STATE_OPTIONS = optionNames<FromStateOptions>({
  baseModel: true,
  userMetadata: true,
  weightsAccessToken: true,
  optimizer: true,
});
const SAMPLER_OPTIONS = optionNames<SamplerSource & SamplingClientOptions>({
  baseModel: true,
  modelPath: true,
  retry: true,
  recordStabilityInfo: true,
});
const LOSS_OPTIONS = optionNames<CustomLossDefinition>({ name: true, inputs: true, graph: true });

const CLOSE_OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({ status: true, detail: true, timeoutMs: true } satisfies Record<keyof CloseOptions, true>),
);

/** @throws ValidationError */
function checkCloseOptions(options: CloseOptions): void {
  if (typeof options !== 'object' || options === null) throw new ValidationError('options must be an object');
  refuseUnknownKeys(options, CLOSE_OPTIONS, 'options');
  const { status = 'success', detail, timeoutMs } = options;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw new ValidationError(`timeoutMs must be a number > 0, got ${String(timeoutMs)}`);
  prepare(FinishSessionRequest, withoutUndefined({ reason: { type: status }, detail }));
}

const environmentTags = (): string[] => process.env['TINKER_TAGS']?.split(',') ?? [];

const telemetryWanted = (option: boolean | undefined): boolean =>
  option ?? ['1', 'true', 'yes', 'on'].includes((process.env['TINKER_TELEMETRY'] ?? '1').toLowerCase());
