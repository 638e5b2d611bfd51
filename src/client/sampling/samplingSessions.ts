import { map, type Observable } from 'rxjs';
import { CreateSamplingSessionRequest, CreateSamplingSessionResponse } from '../../wire/sampling.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { isCheckpointPath } from '../../wire/tinkerPath.js';
import type { Lifecycle } from '../session/Lifecycle.js';
import { withoutUndefined, prepare } from '../../wire/record.js';
import { SamplingClient, type SamplingClientOptions } from '../SamplingClient.js';
import type { OpenSession } from '../session/Session.js';

/** What to sample from: give exactly one of the two. */
export interface SamplerSource {
  /** A model of the service, as it is. */
  readonly baseModel?: string;
  /** Saved weights, `tinker://…`, instead of a base model. */
  readonly modelPath?: string;
}

/** Makes the sampling clients of one session and numbers them. */
export class SamplingSessions {
  #next = 0;

  constructor(
    readonly session: OpenSession,
    readonly lifecycle: Lifecycle,
  ) {}

  /** The number of the next sampling session, also for those that a save makes. */
  nextSeqId(): number {
    return this.#next++;
  }

  create(source: SamplerSource, options: SamplingClientOptions): Observable<SamplingClient> {
    checkSource(source);
    const { session, lifecycle } = this;
    const json = prepare(
      CreateSamplingSessionRequest,
      withoutUndefined({
        sessionId: session.id,
        samplingSessionSeqId: this.nextSeqId(),
        baseModel: source.baseModel,
        modelPath: source.modelPath,
      }),
    );
    return session.connection
      .call({ path: 'create_sampling_session', lane: 'session', json }, CreateSamplingSessionResponse)
      .pipe(map(({ samplingSessionId }) => new SamplingClient(session, lifecycle, samplingSessionId, options)));
  }
}

/** @throws ValidationError unless there is a base model or the path of a checkpoint. */
export function checkSource({ baseModel, modelPath }: SamplerSource): void {
  if (modelPath !== undefined) {
    if (!isCheckpointPath(modelPath)) throw new ValidationError('modelPath must start with tinker://');
  } else if (typeof baseModel !== 'string' || baseModel === '') {
    throw new ValidationError('a sampling client needs a baseModel or a modelPath');
  }
}
