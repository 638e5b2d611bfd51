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
