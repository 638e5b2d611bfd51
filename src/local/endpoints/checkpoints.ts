import {
  Checkpoint,
  CopyWeightsRequest,
  SetTtlRequest,
  TtlSeconds,
  WeightsInfoRequest,
  WeightsInfoResponse,
} from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { json, noContent, redirect, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { del, get, post, put, type Route } from '../http/router.js';
import { forgotten } from '../service/forgotten.js';
import type { LocalService } from '../service/localService.js';
import { checkpointId, FOLDER_BY_TYPE, sizeBytes, tinkerPath, type Manifest } from '../store/manifest.js';
import { copyCheckpoint } from './copyWeights.js';
import { page } from './page.js';
import { findCheckpoint } from './samplerSource.js';

const PLACE = 'training_runs/:run/checkpoints/:folder/:name';

/** Checkpoints as things: listed, published, given a time to live, copied, exported, deleted. */
export const checkpointRoutes = (service: LocalService): Route[] => [
  get('checkpoints', (context) => {
    const { items, cursor } = page(context, service.checkpoints.list());
    return json({ checkpoints: items.map(toCheckpoint), cursor });
  }),
  get('training_runs/:run/checkpoints', (context) => {
    const run = context.param('run');
    if (service.runs.get(run) === undefined) throw new HttpError(404, `there is no training run ${run.slice(0, 150)}`);
    return json({ checkpoints: service.checkpoints.list(run).map(toCheckpoint) });
  }),
  del(PLACE, async (context) => {
    const manifest = placed(service, context);
    await service.checkpoints.delete(manifest);
    service.noteCheckpoint('delete', manifest);
    return noContent();
  }),
  post(`${PLACE}/publish`, (context) => setPublic(service, context, true)),
  del(`${PLACE}/publish`, (context) => setPublic(service, context, false)),
  put(`${PLACE}/ttl`, async (context) => {
    const { ttlSeconds } = context.decode(SetTtlRequest);
    if (ttlSeconds !== null && !TtlSeconds.is(ttlSeconds)) throw new HttpError(422, `expected ${TtlSeconds.name}`);
    const manifest = await service.checkpoints.setTtl(placed(service, context), ttlSeconds);
    service.noteCheckpoint('set_ttl', manifest, { ttl_seconds: ttlSeconds });
    return noContent();
  }),
  get(`${PLACE}/external_weights_urls`, (context) => externalUrls(service, context)),
  get(`${PLACE}/archive`, (context) => archive(service, context, placed(service, context))),
  // Older clients leave out which kind of checkpoint they mean.
  get('training_runs/:run/checkpoints/:name/archive', (context) =>
    archive(service, context, findCheckpoint(service, `tinker://${context.param('run')}/${context.param('name')}`)),
  ),
  post('weights_info', (context) => {
    const { tinkerPath: path } = context.decode(WeightsInfoRequest);
    const { baseModel, optimizerConfig, lora } = findCheckpoint(service, path);
    return json(
      WeightsInfoResponse.encode({
        baseModel,
        optimizerConfig,
        isLora: true,
        loraRank: lora.rank,
        trainUnembed: lora.trainUnembed,
        trainMlp: lora.trainMlp,
        trainAttn: lora.trainAttn,
      }),
    );
  }),
  post('copy_weights', (context) =>
    service.idempotency.once(context, async () => {
      const request = context.decode(CopyWeightsRequest);
      const token = context.header('x-tinker-weights-access-token');
      return json({ tinker_path: tinkerPath(await copyCheckpoint(service, request, token)) });
    }),
  ),
];

export const toCheckpoint = (manifest: Manifest): object =>
  Checkpoint.encode({
    checkpointId: checkpointId(manifest),
    checkpointType: manifest.type,
    time: manifest.createdAt,
    tinkerPath: tinkerPath(manifest),
    sizeBytes: sizeBytes(manifest),
    public: manifest.public,
    baseModel: manifest.baseModel,
    ...(manifest.userMetadata === undefined ? {} : { userMetadata: { ...manifest.userMetadata } }),
    ...(manifest.expiresAt === undefined ? {} : { expiresAt: manifest.expiresAt }),
  });

/** The checkpoint that a REST path names. @throws HttpError 404. */
function placed(service: LocalService, context: RequestContext): Manifest {
  const path = `tinker://${context.param('run')}/${context.param('folder')}/${context.param('name')}`;
  const manifest = service.checkpoints.find(path);
  if (manifest === undefined)
    throw new HttpError(404, `there is no checkpoint ${path.slice(0, 300)}${forgotten(service.options)}`);
  return manifest;
}

async function setPublic(service: LocalService, context: RequestContext, isPublic: boolean): Promise<Reply> {
  const manifest = await service.checkpoints.setPublic(placed(service, context), isPublic);
  service.noteCheckpoint(isPublic ? 'publish' : 'unpublish', manifest);
  return noContent();
}

function externalUrls(service: LocalService, context: RequestContext): Reply {
  const manifest = placed(service, context);
  if (manifest.type !== 'external') {
    throw new HttpError(400, `only ${FOLDER_BY_TYPE.external} have download URLs: save_weights_external makes them`);
  }
  const expiresAt = service.urls.expiresAt;
  const path = tinkerPath(manifest);
  service.noteCheckpoint('read', manifest, { purpose: 'download' });
  return json({
    urls: Object.fromEntries(
      manifest.files.map(({ name }) => [
        name,
        service.urls.sign(context.origin, { kind: 'checkpoint', path, file: name }, expiresAt),
      ]),
    ),
    expires: new Date(expiresAt).toISOString(),
  });
}

/** The way older servers hand out a checkpoint: a redirect to one archive. */
function archive(service: LocalService, context: RequestContext, manifest: Manifest): Reply {
  const path = tinkerPath(manifest);
  service.noteCheckpoint('read', manifest, { purpose: 'download' });
  const expiresAt = service.urls.expiresAt;
  const location = service.urls.sign(
    context.origin,
    { kind: 'archive', path, file: `${manifest.name}.tar` },
    expiresAt,
  );
  return redirect(location, { expires: new Date(expiresAt).toUTCString() });
}
