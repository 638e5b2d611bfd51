import { isTinkerError } from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { UserError } from '../queue/failure.js';
import { forgotten } from '../service/forgotten.js';
import type { LocalService } from '../service/localService.js';
import type { SamplerSource } from '../service/samplingSessions.js';
import { tinkerPath, type Manifest } from '../store/manifest.js';
import { stateOfFiles } from '../store/modelFiles.js';

/** The weights that a request names: those of a checkpoint, or of a base model. @throws HttpError 400 or 404. */
export function samplerSource(
  service: LocalService,
  { baseModel, modelPath }: { readonly baseModel?: string | undefined; readonly modelPath?: string | undefined },
): SamplerSource {
  if (modelPath !== undefined) return checkpointSource(service, findCheckpoint(service, modelPath), modelPath);
  if (baseModel === undefined) throw new HttpError(400, 'give a base_model or a model_path');
  if (!service.engine.baseModels.some(({ name }) => name === baseModel)) {
    const names = service.engine.baseModels.map(({ name }) => name).join(', ');
    throw new HttpError(404, `there is no base model ${baseModel.slice(0, 100)} here; there are: ${names}`);
  }
  return { key: `base:${baseModel}`, baseModel };
}

/** A checkpoint by its path. @throws HttpError 400 if it is not a path, 404 if nothing is there. */
export function findCheckpoint(service: LocalService, path: string): Manifest {
  try {
    return service.checkpoints.require(path);
  } catch (error) {
    if (error instanceof UserError) throw new HttpError(404, `${error.message}${forgotten(service.options)}`);
    if (isTinkerError(error)) throw new HttpError(400, error.message);
    throw error;
  }
}

function checkpointSource(service: LocalService, manifest: Manifest, modelPath: string): SamplerSource {
  if (manifest.type === 'external') {
    throw new HttpError(400, 'external weights cannot be sampled from: save weights for a sampler');
  }
  service.noteCheckpoint('read', manifest, { purpose: 'sample' });
  // The digest is part of the key: a checkpoint that was overwritten is another one.
  const digest = manifest.files.map(({ sha256 }) => sha256).join();
  return {
    key: `${tinkerPath(manifest)}#${digest}`,
    baseModel: manifest.baseModel,
    modelPath,
    load: async () => stateOfFiles(await service.checkpoints.read(manifest)),
  };
}
