import {
  LoadWeightsRequest,
  SaveWeightsExternalRequest,
  SaveWeightsForSamplerRequest,
  SaveWeightsRequest,
  type CheckpointType,
  type UserMetadata,
} from '../../wire/index.js';
import { exportPeft } from '../engine/files/checkpoint.js';
import type { ModelState } from '../engine/types.js';
import { HttpError } from '../http/httpError.js';
import type { Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { post, type Route } from '../http/router.js';
import { UserError } from '../queue/failure.js';
import type { Later } from '../queue/lane.js';
import type { FutureResult } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';
import { SamplingSession } from '../service/samplingSessions.js';
import { sizeBytes, tinkerPath, type Manifest, type WeightsInfo } from '../store/manifest.js';
import { encryptFiles } from '../store/encryptFiles.js';
import { filesOfState, stateOfFiles } from '../store/modelFiles.js';
import { makeModel, startModel } from './models.js';
import { submit } from './submit.js';

/** Saving and loading weights in a model's turn. */
export const weightRoutes = (service: LocalService): Route[] => [
  post('save_weights', (context) => {
    const request = context.decode(SaveWeightsRequest);
    return submit(service, context, {
      requestType: 'SaveWeights',
      modelId: request.modelId,
      seqId: request.seqId,
      run: async () => {
        const state = await service.engine.exportState(request.modelId);
        return saveLater(service, state, { ...request, type: 'training' }, (saved) => ({
          path: tinkerPath(saved),
          type: 'save_weights',
        }));
      },
    });
  }),
  post('save_weights_for_sampler', (context) => saveForSampler(service, context)),
  post('save_weights_external', (context) => {
    const request = context.decode(SaveWeightsExternalRequest);
    return submit(service, context, {
      requestType: 'SaveWeightsExternal',
      modelId: request.modelId,
      seqId: request.seqId,
      run: async () => {
        const state = await service.engine.exportState(request.modelId, { optimizer: false });
        const { ageEncryptionRecipients: recipients = [], ...rest } = request;
        return saveLater(service, state, { ...rest, recipients, type: 'external' }, (saved) => ({
          path: tinkerPath(saved),
          size_bytes: sizeBytes(saved),
          type: 'save_weights_external',
        }));
      },
    });
  }),
  post('load_weights', (context) => loadWeights(service, context)),
];

interface Save {
  readonly modelId: string;
  readonly type: CheckpointType;
  readonly path?: string | undefined;
  readonly seqId?: number | undefined;
  readonly ttlSeconds?: number | undefined;
  readonly overwrite?: boolean;
  readonly userMetadata?: UserMetadata | undefined;
  /** Whom an export is encrypted to. */
  readonly recipients?: readonly string[];
}

/** The weights are taken in the model's turn; a slow disk does not hold up its next step. */
function saveLater(
  service: LocalService,
  state: ModelState,
  request: Save,
  value: (saved: Manifest) => Readonly<Record<string, unknown>>,
): Later {
  const result = save(service, state, request).then((saved): FutureResult => ({ type: 'json', value: value(saved) }));
  return { type: 'later', result };
}

async function save(service: LocalService, state: ModelState, request: Save): Promise<Manifest> {
  const { modelId, type, ttlSeconds, userMetadata, overwrite = false } = request;
  const saved = await service.checkpoints.save({
    runId: modelId,
    type,
    name: request.path ?? `seq-${request.seqId ?? service.now()}`,
    info: infoOf(service, modelId, state),
    files: type === 'external' ? await exported(state, request) : filesOfState(state),
    ttlSeconds,
    userMetadata,
    overwrite,
  });
  service.noteCheckpoint('create', saved);
  return saved;
}

async function exported(state: ModelState, { recipients = [] }: Save): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>(Object.entries(exportPeft(state)));
  return recipients.length === 0 ? files : encryptFiles(files, recipients);
}

function infoOf(service: LocalService, modelId: string, state: ModelState): WeightsInfo {
  return {
    baseModel: state.baseModel,
    lora: state.lora,
    optimizerConfig: service.runs.get(modelId)?.optimizerConfig ?? { type: 'adamw' },
    step: state.step,
    hasOptimizer: state.optimizer !== undefined,
  };
}

function saveForSampler(service: LocalService, context: RequestContext): Reply {
  const request = context.decode(SaveWeightsForSamplerRequest);
  const { modelId, path, seqId, samplingSessionSeqId } = request;
  return submit(service, context, {
    requestType: 'SaveWeightsForSampler',
    modelId,
    seqId,
    run: async ({ sessionId }) => {
      const state = await service.engine.exportState(modelId, { optimizer: false });
      if (path === undefined && samplingSessionSeqId !== undefined) {
        return ephemeralSampler(service, state, sessionId, samplingSessionSeqId);
      }
      return saveLater(service, state, { ...request, type: 'sampler' }, (saved) => ({
        path: tinkerPath(saved),
        type: 'save_weights_for_sampler',
      }));
    },
  });
}

/** A sampler whose weights have no name: they live as long as its session. */
async function ephemeralSampler(
  service: LocalService,
  state: ModelState,
  sessionId: string,
  seqId: number,
): Promise<FutureResult> {
  const id = service.dialect.samplerId(sessionId, seqId);
  if (service.samplingSessions.has(id)) {
    throw new UserError(`sampling_session_seq_id ${seqId} was already used`);
  }
  const load = await service.ephemeral.keep(id, state);
  const source = { key: `ephemeral:${id}`, baseModel: state.baseModel, load };
  service.samplingSessions.set(id, new SamplingSession(id, sessionId, source, ''));
  return { type: 'json', value: { sampling_session_id: id, type: 'save_weights_for_sampler' } };
}

function loadWeights(service: LocalService, context: RequestContext): Reply {
  const request = context.decode(LoadWeightsRequest);
  const { modelId, sessionId, modelSeqId, seqId, path, optimizer } = request;
  if (modelId !== undefined) {
    if (sessionId !== undefined) throw new HttpError(422, 'give model_id or session_id, not both');
    return submit(service, context, {
      requestType: 'LoadWeights',
      modelId,
      seqId,
      run: async () => {
        await load(service, modelId, readable(service, request), optimizer);
        return { type: 'json', value: { path, model_id: modelId, type: 'load_weights' } };
      },
    });
  }
  if (sessionId === undefined || modelSeqId === undefined) {
    throw new HttpError(422, 'give a model_id, or a session_id and a model_seq_id');
  }
  return startModel(service, context, {
    sessionId,
    modelSeqId,
    baseModel: request.baseModel ?? '',
    requestType: 'LoadWeights',
    run: async (newId) => {
      const manifest = readable(service, request);
      const { baseModel, lora, optimizerConfig } = manifest;
      if (optimizer && request.optimizerConfig !== undefined && request.optimizerConfig.type !== optimizerConfig.type) {
        throw new UserError('the optimizer of a restored optimizer state cannot be changed');
      }
      await makeModel(service, {
        modelId: newId,
        sessionId,
        baseModel: request.baseModel ?? baseModel,
        lora,
        optimizerConfig: (optimizer ? undefined : request.optimizerConfig) ?? optimizerConfig,
        userMetadata: request.userMetadata,
      });
      await load(service, newId, manifest, optimizer);
      return { type: 'json', value: { path, model_id: newId, type: 'load_weights' } };
    },
  });
}

/** The checkpoint of a path, if the caller may read it. */
function readable(
  service: LocalService,
  { path, weightsAccessToken }: { readonly path: string; readonly weightsAccessToken?: string },
): Manifest {
  const manifest = service.checkpoints.require(path);
  if (weightsAccessToken !== undefined && !manifest.public && !service.auth.accepts(weightsAccessToken)) {
    throw new UserError(`the weights access token does not open ${path}`);
  }
  if (manifest.type === 'external') throw new UserError('external weights cannot be trained on');
  service.noteCheckpoint('read', manifest, { purpose: 'load' });
  return manifest;
}

async function load(service: LocalService, modelId: string, manifest: Manifest, optimizer: boolean): Promise<void> {
  if (optimizer && !manifest.hasOptimizer) {
    throw new UserError(`${tinkerPath(manifest)} holds no optimizer state`);
  }
  const state = stateOfFiles(await service.checkpoints.read(manifest));
  await service.engine.loadState(modelId, state, { optimizer });
}
