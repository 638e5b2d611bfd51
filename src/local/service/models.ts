import { HttpError } from '../http/httpError.js';
import type { Lane } from '../queue/lane.js';
import type { LocalFuture } from '../queue/localFuture.js';

/** A model that may be trained now. */
export interface LocalModel {
  readonly modelId: string;
  readonly sessionId: string;
  readonly baseModel: string;
  readonly lane: Lane;
  /** Of the request that made it, so that a retry of that request is known. */
  readonly digest: string;
  readonly created: LocalFuture;
}

/** The models in memory, by id. */
export class Models {
  readonly #models = new Map<string, LocalModel>();

  /** @throws HttpError 404. */
  get(modelId: string): LocalModel {
    const model = this.#models.get(modelId);
    if (model === undefined) throw new HttpError(404, `there is no model ${modelId.slice(0, 150)} in memory`);
    return model;
  }

  find(modelId: string): LocalModel | undefined {
    return this.#models.get(modelId);
  }

  add(model: LocalModel): void {
    this.#models.set(model.modelId, model);
  }

  remove(modelId: string): void {
    this.#models.delete(modelId);
  }

  ofSession(sessionId: string): LocalModel[] {
    return [...this.#models.values()].filter((model) => model.sessionId === sessionId);
  }
}
