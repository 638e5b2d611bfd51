import type { TypeOf } from 'io-ts';
import type { CopyWeightsRequest } from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import type { LocalService } from '../service/localService.js';
import type { Manifest } from '../store/manifest.js';
import { findCheckpoint } from './samplerSource.js';

type Copy = TypeOf<typeof CopyWeightsRequest>;

/**
 * Copies a checkpoint of either kind into a new run, which holds the copy and is never trained.
 *
 * @throws HttpError 403 for a token that opens nothing, 404 for no such checkpoint, 409 for a slot that is taken.
 */
export async function copyCheckpoint(service: LocalService, request: Copy, token?: string): Promise<Manifest> {
  const source = findCheckpoint(service, request.sourcePath);
  if (token !== undefined && !source.public && !service.auth.accepts(token)) {
    throw new HttpError(403, 'the weights access token does not open this checkpoint');
  }
  const { sessionId, runId } = await destination(service, request);
  const time = new Date(service.now()).toISOString();
  await service.runs.put(runId, {
    version: 1,
    runId,
    sessionId,
    baseModel: source.baseModel,
    lora: source.lora,
    optimizerConfig: source.optimizerConfig,
    createdAt: time,
    lastRequestAt: time,
  });
  const copy = await service.checkpoints.copy(source, runId, request.ttlSeconds);
  service.noteCheckpoint('copy', copy, { source_path: request.sourcePath });
  return copy;
}

async function destination(
  service: LocalService,
  { sessionId, modelSeqId, destinationProjectId }: Copy,
): Promise<{ readonly sessionId: string; readonly runId: string }> {
  if ((sessionId === undefined) !== (modelSeqId === undefined)) {
    throw new HttpError(422, 'give session_id and model_seq_id together');
  }
  if (sessionId === undefined) {
    const session = await service.sessions.create({
      tags: [],
      sdkVersion: '',
      projectId: service.checkProject(destinationProjectId),
    });
    return { sessionId: session.sessionId, runId: service.dialect.modelId(session.sessionId, 0) };
  }
  if (destinationProjectId !== undefined) throw new HttpError(422, 'give a session or a project, not both');
  service.sessions.use(sessionId);
  const runId = service.dialect.modelId(sessionId, modelSeqId!);
  if (service.runs.get(runId) !== undefined || service.models.has(runId)) {
    throw new HttpError(409, `model_seq_id ${modelSeqId} was already used`);
  }
  return { sessionId, runId };
}
