import { TrainingRun } from '../../wire/index.js';
import { LOCAL_USER } from '../http/auth.js';
import { HttpError } from '../http/httpError.js';
import { json } from '../http/reply.js';
import { get, type Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import type { RunRecord } from '../service/runs.js';
import { toCheckpoint } from './checkpoints.js';
import { page } from './page.js';

/** Training runs, the latest used first. */
export const trainingRunRoutes = (service: LocalService): Route[] => [
  get('training_runs', (context) => {
    const project = context.query.get('project_id');
    const runs = service.runs
      .values()
      .filter(({ sessionId }) => project === null || service.sessions.find(sessionId)?.projectId === project)
      .sort((a, b) => service.lastRequestAt(b).localeCompare(service.lastRequestAt(a)));
    const { items, cursor } = page(context, runs);
    return json({ training_runs: items.map((run) => toTrainingRun(service, run)), cursor });
  }),
  get('training_runs/:run', (context) => {
    const run = service.runs.get(context.param('run'));
    if (run === undefined) throw new HttpError(404, `there is no training run ${context.param('run').slice(0, 150)}`);
    return json(toTrainingRun(service, run));
  }),
];

function toTrainingRun(service: LocalService, run: RunRecord): object {
  const checkpoints = service.checkpoints.list(run.runId);
  const last = checkpoints.find(({ type }) => type === 'training');
  const lastSampler = checkpoints.find(({ type }) => type === 'sampler');
  return {
    ...TrainingRun.encode({
      trainingRunId: run.runId,
      baseModel: run.baseModel,
      modelOwner: LOCAL_USER,
      isLora: true,
      corrupted: false,
      loraRank: run.lora.rank,
      lastRequestTime: service.lastRequestAt(run),
      ...(run.userMetadata === undefined ? {} : { userMetadata: { ...run.userMetadata } }),
    }),
    ...(last === undefined ? {} : { last_checkpoint: toCheckpoint(last) }),
    ...(lastSampler === undefined ? {} : { last_sampler_checkpoint: toCheckpoint(lastSampler) }),
  };
}
