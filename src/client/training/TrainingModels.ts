import { concatMap, map, type Observable } from 'rxjs';
import type { OptimizerConfig } from '../../wire/optimizer.js';
import type { Json } from '../../wire/record.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { CreateModelRequest, CreateModelResponse } from '../../wire/training.js';
import { LoadWeightsRequest, LoadWeightsResponse, type WeightsInfoResponse } from '../../wire/weights.js';
import { withoutCallOptions, type CallOptions } from '../CallOptions.js';
import type { Lifecycle } from '../session/Lifecycle.js';
import { withoutUndefined, prepare } from '../../wire/record.js';
import type { SamplingSessions } from '../sampling/samplingSessions.js';
import type { OpenSession } from '../session/Session.js';
import { submitWork } from '../results/awaitResult.js';
import type { OnAccepted } from '../TinkerFuture.js';
import { TrainingClient } from '../TrainingClient.js';

/** Options of `ServiceClient.createLoraTrainingClient`. */
export interface CreateLoraTrainingClientOptions extends CallOptions {
  /** One of the service's models, such as `Qwen/Qwen3-8B`; `getServerCapabilities` lists them. */
  readonly baseModel: string;
  /** The rank of the LoRA matrices: an integer ≥ 1. Default 32. */
  readonly rank?: number;
  /** For the initial weights: an integer ≥ 0. Default: the service's choice, another one each time. */
  readonly seed?: number;
  /** Whether the MLP layers are trained. Default true. At least one of `trainMlp`, `trainAttn` and `trainUnembed` must be true. */
  readonly trainMlp?: boolean;
  /** Whether the attention layers are trained. Default true. */
  readonly trainAttn?: boolean;
  /** Whether the unembedding is trained. Default true. */
  readonly trainUnembed?: boolean;
  /** The optimizer family, fixed for the model's life. Default AdamW. */
  readonly optimizer?: OptimizerConfig;
  /** Kept with the training run, for people and searches. Default: none. */
  readonly userMetadata?: Readonly<Record<string, string>>;
}
/** Options of `createTrainingClientFromState` and `createTrainingClientFromStateWithOptimizer`. */
export interface FromStateOptions extends CallOptions {
  /** Default: the base model the weights were trained on. */
  readonly baseModel?: string;
  /** Kept with the training run, for people and searches. Default: none. */
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** The owner's token, to start from another user's weights. Default: none is needed for your own. */
  readonly weightsAccessToken?: string;
  /** The optimizer family; with the optimizer's state it is the saved one. */
  readonly optimizer?: OptimizerConfig;
}

/** An open session and the numbering of its samplers. */
export interface Opened {
  readonly session: OpenSession;
  readonly samplers: SamplingSessions;
}
/** A state to start from: its path, and whether its optimizer comes with it. */
export interface SavedState {
  readonly path: string;
  readonly withOptimizer: boolean;
}

const RANK = 32;

/** Makes the training clients of one service and numbers their models, in the order of the calls. */
export class TrainingModels {
  #next = 0;

  constructor(
    readonly lifecycle: Lifecycle,
    /** What a checkpoint holds. */
    readonly weightsInfo: (path: string, weightsAccessToken: string | undefined) => Observable<WeightsInfoResponse>,
  ) {}

  nextSeqId(): number {
    return this.#next++;
  }

  /** @throws ValidationError before anything is opened or sent. */
  create(
    open: Observable<Opened>,
    modelSeqId: number,
    options: CreateLoraTrainingClientOptions,
    onAccepted: OnAccepted,
  ): Observable<TrainingClient> {
    const request = modelRequest(modelSeqId, options);
    request('');
    return open.pipe(
      concatMap(({ session, samplers }) => {
        const work = {
          requestType: 'CreateModel',
          path: 'create_model',
          target: options.baseModel,
          json: request(session.id),
          format: { json: CreateModelResponse },
        } as const;
        return submitWork(session, work, onAccepted).pipe(
          map(({ modelId }) => new TrainingClient(session, this.lifecycle, samplers, modelId)),
        );
      }),
    );
  }

  fromState(
    open: Observable<Opened>,
    modelSeqId: number,
    state: SavedState,
    options: FromStateOptions,
    onAccepted: OnAccepted,
  ): Observable<TrainingClient> {
    return open.pipe(
      concatMap((opened) => {
        const { connection } = opened.session;
        connection.secrets.add(options.weightsAccessToken ?? '');
        return connection.config.createModelViaLoadWeights
          ? this.#loadInOneCall(opened, modelSeqId, state, options, onAccepted)
          : this.#loadIntoNewModel(open, modelSeqId, state, options, onAccepted);
      }),
    );
  }

  #loadInOneCall(
    { session, samplers }: Opened,
    modelSeqId: number,
    { path, withOptimizer }: SavedState,
    options: FromStateOptions,
    onAccepted: OnAccepted,
  ): Observable<TrainingClient> {
    const { optimizer: optimizerConfig, ...rest } = withoutCallOptions(options);
    const modelId = `${session.id}:train:${modelSeqId}`;
    const json = prepare(
      LoadWeightsRequest,
      withoutUndefined({ sessionId: session.id, modelSeqId, ...rest, path, optimizer: withOptimizer, optimizerConfig }),
    );
    const work = {
      requestType: 'LoadWeights',
      path: 'load_weights',
      target: modelId,
      json,
      format: { json: LoadWeightsResponse },
    } as const;
    return submitWork(session, work, onAccepted).pipe(
      map(() => new TrainingClient(session, this.lifecycle, samplers, modelId)),
    );
  }

  #loadIntoNewModel(
    open: Observable<Opened>,
    modelSeqId: number,
    { path, withOptimizer }: SavedState,
    options: FromStateOptions,
    onAccepted: OnAccepted,
  ): Observable<TrainingClient> {
    const { weightsAccessToken } = options;
    return this.weightsInfo(path, weightsAccessToken).pipe(
      concatMap((info) => this.create(open, modelSeqId, modelLike(info, withOptimizer, options), onAccepted)),
      concatMap((client) =>
        client
          .loading(path, withOptimizer, withoutUndefined({ weightsAccessToken }), onAccepted)
          .pipe(map(() => client)),
      ),
    );
  }
}

/** The request that makes a model, still without its session. @throws ValidationError */
function modelRequest(modelSeqId: number, options: CreateLoraTrainingClientOptions): (sessionId: string) => Json {
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
  const loraConfig = withoutUndefined({ rank, seed, trainMlp, trainAttn, trainUnembed });
  return (sessionId) =>
    prepare(
      CreateModelRequest,
      withoutUndefined({ sessionId, modelSeqId, baseModel, loraConfig, optimizerConfig: optimizer, userMetadata }),
    );
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
  return withoutUndefined({
    baseModel,
    rank,
    trainMlp,
    trainAttn,
    trainUnembed,
    userMetadata,
    optimizer: withOptimizer ? info.optimizerConfig : optimizer,
  });
}
