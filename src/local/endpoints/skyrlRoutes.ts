import {
  ForwardBackwardRequestJson,
  ForwardRequestJson,
  GetInfoRequest,
  SampleRequest,
  SaveWeightsForSamplerRequest,
  SaveWeightsRequest,
  WeightsInfoRequest,
  type LossFnConfig,
} from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { json, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { get, post, type Handle, type Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import { FOLDER_BY_TYPE, tinkerPath, type Manifest } from '../store/manifest.js';
import { findCheckpoint } from './samplerSource.js';
import { findModel } from './submit.js';

const NAME = /^[a-zA-Z0-9_-]{1,255}$/;
const CONFIG_KEYS: Readonly<Record<string, readonly string[]>> = {
  cross_entropy: [],
  importance_sampling: [],
  ppo: ['clip_low_threshold', 'clip_high_threshold', 'value_clip'],
  cispo: ['clip_low_threshold', 'clip_high_threshold'],
};
const KEPT = [
  ...['GET healthz', 'POST client/config', 'POST create_session', 'POST session_heartbeat', 'POST create_model'],
  ...['POST unload_model', 'POST optim_step', 'POST load_weights', 'POST create_sampling_session'],
  ...['GET samplers/:id', 'POST retrieve_future', 'POST telemetry'],
  ...['GET files/:token/:file', 'GET training_runs/:run/checkpoints/:name/archive'],
];

/** The endpoints that SkyRL has, out of those of the hosted service, with its own checks before them. */
export function skyrlRoutes(service: LocalService, tinker: readonly Route[]): Route[] {
  const handler = (name: string): Handle => {
    const route = tinker.find(({ method, path }) => `${method} ${path}` === name);
    if (route === undefined) throw new Error(`no route ${name}`);
    return route.handle;
  };
  const checked = (path: string, check: (context: RequestContext) => void): Route => {
    const handle = handler(`POST ${path}`);
    return post(path, (context) => {
      check(context);
      return handle(context);
    });
  };
  return [
    ...tinker.filter(({ method, path }) => KEPT.includes(`${method} ${path}`)),
    checked('forward_backward', (context) => {
      refuseProtobuf(context);
      checkLoss(context.decode(ForwardBackwardRequestJson).forwardBackwardInput);
    }),
    checked('forward', (context) => checkLoss(context.decode(ForwardRequestJson).forwardInput)),
    checked('asample', checkSample),
    checked('save_weights', (context) => checkSave(service, context, 'training')),
    checked('save_weights_for_sampler', (context) => checkSave(service, context, 'sampler')),
    get('get_server_capabilities', () =>
      json({ supported_models: service.engine.baseModels.map(({ name }) => ({ model_name: name })) }),
    ),
    post('get_info', (context) => getInfo(service, context)),
    post('weights_info', (context) => {
      const { baseModel, lora } = findCheckpoint(service, context.decode(WeightsInfoRequest).tinkerPath);
      return json({ base_model: baseModel, is_lora: true, lora_rank: lora.rank });
    }),
    get('training_runs', (context) => withoutZone(handler('GET training_runs'), context)),
    get('training_runs/:run', (context) => withoutZone(handler('GET training_runs/:run'), context)),
    get('training_runs/:run/checkpoints', (context) => {
      const run = context.param('run');
      return json({ checkpoints: service.checkpoints.list(run).map(toCheckpoint) });
    }),
  ];
}

/** It takes the body for JSON: bytes that are not UTF-8 crash it, invalid JSON is only refused. */
function refuseProtobuf(context: RequestContext): void {
  if (!context.sendsProtobuf) return;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(context.body);
  } catch {
    throw new HttpError(500, 'Internal Server Error');
  }
  throw new HttpError(422, 'body: Input should be a valid dictionary or object to extract fields from');
}

function checkLoss({ lossFn, lossFnConfig = {} }: { lossFn: string; lossFnConfig?: LossFnConfig }): void {
  const allowed = CONFIG_KEYS[lossFn];
  if (allowed === undefined)
    throw new HttpError(422, `loss_fn: Input should be ${Object.keys(CONFIG_KEYS).join(', ')}`);
  const wrong = Object.keys(lossFnConfig).filter((key) => !allowed.includes(key));
  if (wrong.length > 0) throw new HttpError(422, `loss_fn_config: invalid keys ${wrong.join(', ')}`);
}

function checkSample(context: RequestContext): void {
  const { samplingParams } = context.decode(SampleRequest);
  const given = (context.json() as { sampling_params?: { stop?: unknown } | null }).sampling_params?.stop;
  if (typeof given === 'string') throw new HttpError(422, 'sampling_params.stop: Input should be a valid list');
  if (samplingParams.maxTokens === undefined) throw new HttpError(400, 'max_tokens is currently required');
}

function checkSave(service: LocalService, context: RequestContext, type: 'training' | 'sampler'): void {
  const { modelId, path } =
    type === 'training' ? context.decode(SaveWeightsRequest) : context.decode(SaveWeightsForSamplerRequest);
  if (path === undefined) {
    if (type === 'training') throw new HttpError(422, 'path: Field required');
    return;
  }
  if (!NAME.test(path)) throw new HttpError(422, `path: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  if (service.checkpoints.find(`tinker://${modelId}/${FOLDER_BY_TYPE[type]}/${path}`) !== undefined) {
    throw new HttpError(409, `Checkpoint '${path}' already exists for model '${modelId}'`);
  }
}

function getInfo(service: LocalService, context: RequestContext): Reply {
  const { modelId } = context.decode(GetInfoRequest);
  const { baseModel } = findModel(service, modelId);
  const rank = service.runs.get(modelId)?.lora.rank;
  return json({
    model_id: modelId,
    status: 'created',
    model_data: {
      base_model: baseModel,
      model_name: baseModel,
      lora_config: rank === undefined ? null : { rank, seed: null },
    },
  });
}

const toCheckpoint = (manifest: Manifest): object => ({
  checkpoint_id: manifest.name,
  checkpoint_type: manifest.type,
  time: manifest.createdAt.replace('Z', ''),
  tinker_path: tinkerPath(manifest),
});

/** Its times carry no zone. */
async function withoutZone(handle: Handle, context: RequestContext): Promise<Reply> {
  const reply = await handle(context);
  if (!(reply.body instanceof Uint8Array)) return reply;
  const text = Buffer.from(reply.body).toString('utf8');
  return { ...reply, body: Buffer.from(text.replace(/"(\d{4}-\d{2}-\d{2}T[\d:.]+)Z"/g, '"$1"')) };
}
