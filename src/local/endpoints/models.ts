import type { LoraOptions, ResolvedLora } from '../engine/types.js';
import {
  CreateModelRequest,
  GetInfoRequest,
  UnloadModelRequest,
  type OptimizerConfig,
  type UserMetadata,
} from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { json, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { post, type Route } from '../http/router.js';
import { UserError } from '../queue/failure.js';
import type { FutureResult } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';
import { digestOf, promiseOf } from './promise.js';
import { findModel, submit } from './submit.js';

/** Making models, asking about them and unloading them. */
export const modelRoutes = (service: LocalService): Route[] => [
  post('create_model', (context) => createModel(service, context)),
  post('get_info', (context) => getInfo(service, context)),
  post('unload_model', (context) => {
    const { modelId } = context.decode(UnloadModelRequest);
    return submit(service, context, {
      requestType: 'UnloadModel',
      modelId,
      seqId: undefined,
      run: async () => {
        service.models.delete(modelId);
        await service.engine.disposeModel(modelId);
        return { type: 'json', value: { model_id: modelId, type: 'unload_model' } };
      },
    });
  }),
];

function createModel(service: LocalService, context: RequestContext): Reply {
  const request = context.decode(CreateModelRequest);
  return startModel(service, context, {
    sessionId: request.sessionId,
    modelSeqId: request.modelSeqId,
    baseModel: request.baseModel,
    requestType: 'CreateModel',
    run: async (modelId) => {
      if (request.loraConfig === undefined) throw new UserError('only LoRA models can be trained: give a lora_config');
      await makeModel(service, {
        modelId,
        sessionId: request.sessionId,
        baseModel: request.baseModel,
        lora: request.loraConfig,
        optimizerConfig: request.optimizerConfig,
        userMetadata: request.userMetadata,
      });
      return { type: 'json', value: { model_id: modelId, type: 'create_model' } };
    },
  });
}

export interface ModelStart {
  readonly sessionId: string;
  readonly modelSeqId: number;
  readonly baseModel: string;
  readonly requestType: string;
  readonly run: (modelId: string) => Promise<FutureResult>;
}

/** Opens the lane of a new model; `run` is the first thing in it. The same request again gets the same future. */
export function startModel(service: LocalService, context: RequestContext, start: ModelStart): Reply {
  const { sessionId, modelSeqId, baseModel, requestType } = start;
  service.sessions.use(sessionId);
  const modelId = service.dialect.modelId(sessionId, modelSeqId);
  const digest = digestOf(context);
  const known = service.models.get(modelId);
  if (known !== undefined) {
    if (known.digest !== digest) throw new HttpError(409, `model_seq_id ${modelSeqId} was already used`);
    return promiseOf(service, known.created);
  }
  if (service.runs.get(modelId) !== undefined) throw new HttpError(409, `model_seq_id ${modelSeqId} was already used`);
  const lane = service.makeLane(modelId);
  const created = lane.submit(undefined, digest, () => ({
    future: service.futures.create({ requestType, sessionId, modelId }),
    run: async () => {
      try {
        return await start.run(modelId);
      } catch (error) {
        await forgetModel(service, modelId);
        throw error;
      }
    },
  }));
  service.models.set(modelId, { modelId, sessionId, baseModel, lane, digest, created });
  return promiseOf(service, created);
}

/** Leaves nothing of a model that could not be made: the same request may try again. */
async function forgetModel(service: LocalService, modelId: string): Promise<void> {
  service.models.delete(modelId);
  await service.engine.disposeModel(modelId).catch(() => undefined);
  await service.runs.delete(modelId).catch(() => undefined);
}

export interface NewModel {
  readonly modelId: string;
  readonly sessionId: string;
  readonly baseModel: string;
  readonly lora: LoraOptions;
  readonly optimizerConfig: OptimizerConfig;
  readonly userMetadata?: UserMetadata | undefined;
}

/** Makes the model in the engine and the record of its run. */
export async function makeModel(service: LocalService, model: NewModel): Promise<void> {
  const { modelId, sessionId, baseModel, lora, optimizerConfig, userMetadata } = model;
  const { rank, seed = 0, trainAttn = true, trainMlp = true, trainUnembed = true } = lora;
  const resolved: ResolvedLora = { rank, seed, trainAttn, trainMlp, trainUnembed };
  await service.engine.createModel({ modelId, baseModel, lora: resolved, optimizer: optimizerConfig.type });
  const time = new Date(service.now()).toISOString();
  await service.runs.put(modelId, {
    version: 1,
    runId: modelId,
    sessionId,
    baseModel,
    lora: resolved,
    optimizerConfig,
    ...(userMetadata === undefined ? {} : { userMetadata }),
    createdAt: time,
    lastRequestAt: time,
  });
}

async function getInfo(service: LocalService, context: RequestContext): Promise<Reply> {
  const { modelId } = context.decode(GetInfoRequest);
  const { baseModel } = findModel(service, modelId);
  const run = service.runs.get(modelId);
  return json({
    type: 'get_info',
    model_id: modelId,
    model_data: { arch: 'tinker-rx', model_name: baseModel, tokenizer_id: await service.tokenizerFolder(baseModel) },
    model_name: baseModel,
    is_lora: true,
    ...(run === undefined ? {} : { lora_rank: run.lora.rank, optimizer_config: run.optimizerConfig }),
  });
}
