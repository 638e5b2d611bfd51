import { randomUUID } from 'node:crypto';
import {
  ExternalWeightsUpload,
  ExternalWeightsUploadFinishRequest,
  ExternalWeightsUploadStartRequest,
} from '../../wire/index.js';
import { exportPeft } from '../engine/files/checkpoint.js';
import { decodeSafetensors } from '../engine/files/safetensors.js';
import type { ModelState, ResolvedLora } from '../engine/types.js';
import { HttpError } from '../http/httpError.js';
import { json, noContent, type Reply } from '../http/reply.js';
import { post, put, type Route } from '../http/router.js';
import { FILES } from '../http/signedUrls.js';
import type { LocalService } from '../service/localService.js';
import { ADAPTER_FILES, type Upload } from '../service/uploads.js';
import { tinkerPath } from '../store/manifest.js';

const NAME = 'uploaded';

/** Adapters from elsewhere: addresses to put their files to, and a checkpoint made of them. */
export const uploadRoutes = (service: LocalService): Route[] => [
  post('external_weights_upload_start', (context) => {
    const { baseModel, loraConfig, destinationProjectId } = context.decode(ExternalWeightsUploadStartRequest);
    if (!service.engine.baseModels.some(({ name }) => name === baseModel)) {
      throw new HttpError(404, `there is no base model ${baseModel.slice(0, 100)} here`);
    }
    const { expiresAt } = service.urls;
    const projectId = service.checkProject(destinationProjectId);
    const { id } = service.uploads.begin({ baseModel, loraConfig, projectId, expiresAt });
    const sign = (file: string) => service.urls.sign(context.origin, { kind: 'upload', uploadId: id, file }, expiresAt);
    const urls = Object.fromEntries(ADAPTER_FILES.map((file) => [file, sign(file)]));
    return json(ExternalWeightsUpload.encode({ uploadId: id, urls, expires: new Date(expiresAt).toISOString() }));
  }),
  put(`${FILES}/:token/:file`, (context) => {
    const target = service.urls.open(context);
    if (target.kind !== 'upload') throw new HttpError(403, 'this URL is for reading');
    // A copy: the request's buffer goes back to its pool.
    uploadOf(service, target.uploadId).files.set(target.file, Uint8Array.from(context.body));
    return noContent();
  }),
  post('external_weights_upload_finish', (context) =>
    service.idempotency.once(context, () =>
      finish(service, context.decode(ExternalWeightsUploadFinishRequest).uploadId),
    ),
  ),
];

function uploadOf(service: LocalService, id: string): Upload {
  const upload = service.uploads.find(id);
  if (upload === undefined) throw new HttpError(404, 'there is no such upload, or it has expired');
  return upload;
}

async function finish(service: LocalService, id: string): Promise<Reply> {
  const upload = uploadOf(service, id);
  const missing = ADAPTER_FILES.filter((file) => !upload.files.has(file));
  if (missing.length > 0) throw new HttpError(400, `not uploaded yet: ${missing.join(', ')}`);
  const { rank, seed = 0, trainAttn, trainMlp, trainUnembed } = upload.loraConfig;
  const lora: ResolvedLora = { rank, seed, trainAttn, trainMlp, trainUnembed };
  checkFiles(upload, await exampleOf(service, upload.baseModel, lora));
  const { sessionId } = await service.sessions.create({
    tags: [],
    sdkVersion: '',
    projectId: service.checkProject(upload.projectId),
  });
  const runId = service.dialect.modelId(sessionId, 0);
  const time = new Date(service.now()).toISOString();
  const optimizerConfig = { type: 'adamw' } as const;
  const { baseModel } = upload;
  const record = { runId, sessionId, baseModel, lora, optimizerConfig, createdAt: time, lastRequestAt: time };
  await service.runs.put(runId, { version: 1, ...record });
  const info = { baseModel, lora, optimizerConfig, step: 0, hasOptimizer: false };
  const saved = await service.checkpoints.save({ runId, type: 'external', name: NAME, info, files: upload.files });
  service.uploads.end(id);
  service.noteCheckpoint('create', saved, { source: 'upload' });
  return json({ tinker_path: tinkerPath(saved) });
}

/** What this service itself would export for such an adapter. */
async function exampleOf(service: LocalService, baseModel: string, lora: ResolvedLora): Promise<ModelState> {
  const modelId = `upload-${randomUUID()}`;
  await service.engine.createModel({ modelId, baseModel, lora, optimizer: 'adamw' });
  try {
    return await service.engine.exportState(modelId, { optimizer: false });
  } finally {
    await service.engine.disposeModel(modelId);
  }
}

/** @throws HttpError 400 for files that are not laid out as the service's own. */
function checkFiles({ files }: Upload, example: ModelState): void {
  const [weights, config] = ADAPTER_FILES;
  const tensors = parsed(weights, () => decodeSafetensors(files.get(weights)!).tensors);
  for (const [name, { shape }] of Object.entries(example.weights)) {
    const found = tensors[name]?.shape.join(', ');
    if (found === shape.join(', ')) continue;
    const said = found === undefined ? 'has no' : `has shape [${found}] for`;
    throw new HttpError(400, `${weights} ${said} ${name}, expected shape [${shape.join(', ')}]`);
  }
  const surplus = Object.keys(tensors).find((name) => example.weights[name] === undefined);
  if (surplus !== undefined) throw new HttpError(400, `${weights} has ${surplus.slice(0, 200)}, which is not adapted`);
  const read = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown> | null;
  const given = parsed(config, () => read(files.get(config)!));
  const wanted = read(exportPeft(example)[config]);
  const wrong = ['peft_type', 'r', 'lora_alpha'].find((key) => given?.[key] !== wanted?.[key]);
  if (wrong !== undefined) throw new HttpError(400, `${config}: ${wrong} must be ${JSON.stringify(wanted?.[wrong])}`);
}

function parsed<T>(file: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new HttpError(400, `${file} cannot be read`);
  }
}
