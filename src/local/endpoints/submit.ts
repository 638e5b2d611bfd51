import { HttpError } from '../http/httpError.js';
import type { Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import type { Operation } from '../queue/lane.js';
import type { LocalService } from '../service/localService.js';
import type { LocalModel } from '../service/models.js';
import { tinkerPath } from '../store/manifest.js';
import { digestOf, promiseOf } from './promise.js';

export interface Submission {
  readonly requestType: string;
  readonly modelId: string;
  readonly seqId: number | undefined;
  readonly run: (model: LocalModel, cycle: number) => ReturnType<Operation['run']>;
  /** Where two bodies may say the same thing differently. Default: the digest of the body. */
  readonly digest?: string;
}

/**
 * Gives a request to a model its turn and answers with the promise for it.
 *
 * @throws HttpError 404 for an unknown model, 409 for a used seq_id, 410 for a session that is over, 429 over quota.
 */
export function submit(service: LocalService, context: RequestContext, submission: Submission): Reply {
  const { requestType, modelId, seqId, run, digest = digestOf(context) } = submission;
  const { sessionId, lane, ...model } = findModel(service, modelId);
  service.touchRun(modelId);
  const future = lane.submit(seqId, digest, () => {
    if (service.controls.training.full) {
      throw new HttpError(429, 'too much training work in flight', { 'retry-after': '1' });
    }
    const release = service.controls.training.take(context.body.length);
    return {
      future: service.futures.create({ requestType, sessionId, modelId }, release),
      isStep: requestType === 'OptimStep',
      run: (cycle) => run({ sessionId, lane, ...model }, cycle),
    };
  });
  return promiseOf(service, future);
}

/** What to say of a model that was made and is no longer in memory. */
function whyGone(service: LocalService, modelId: string): string {
  const [last] = service.checkpoints.list(modelId).filter(({ type }) => type === 'training');
  const reason = `model ${modelId} is no longer in memory: it was unloaded, or the service was started again since`;
  return last === undefined
    ? `${reason}. No state of it was saved: make a new model`
    : `${reason}. Make a new model from its last saved state, ${tinkerPath(last)} (step ${last.step})`;
}

/** A model of a session that is alive. @throws HttpError 404, and 410 for a session that is over */
export function findModel(service: LocalService, modelId: string): LocalModel {
  const model = service.models.get(modelId);
  // A finished session explains better than "no such model" why its models are gone.
  const sessionId = model?.sessionId ?? service.runs.get(modelId)?.sessionId;
  if (sessionId === undefined) throw new HttpError(404, `there is no model ${modelId.slice(0, 150)} in memory`);
  service.sessions.use(sessionId);
  if (model === undefined) throw new HttpError(404, whyGone(service, modelId));
  return model;
}
