import { merge, Subject, tap } from 'rxjs';
import type { ServiceClient } from '../../../client/index.js';
import type { RlEvent, RlLoss, TaskRow } from '../../../rl/index.js';
import { CliError } from '../../CliError.js';
import { withService } from '../../clients.js';
import { note, type Context } from '../../context.js';
import type { Given } from '../../declare.js';
import { loadRenderer } from '../../loadRenderer.js';
import { count } from '../../output/format.js';
import { waitFor } from '../../terminal/waitFor.js';
import { countRows, warnOfFewRows } from '../countRows.js';
import type { RunWork } from '../followRun.js';
import { learningRateFor } from '../learningRateFor.js';
import { GRPO, type Config } from '../options.js';
import { planRun, refusePipe } from '../planRun.js';
import { runCommand, type OpenRun, type RunKind } from '../runCommand.js';
import { calibrate } from './calibrate.js';
import { loadReward } from './loadReward.js';
import { rowsOf } from './rowsOf.js';

type GrpoConfig = Config<typeof GRPO>;

const KIND: RunKind<typeof GRPO> & { readonly check: (config: GrpoConfig) => void } = {
  name: 'grpo',
  options: GRPO,
  isRl: true,
  loss: ({ loss }) => loss,
  check: ({ reward }) => {
    if (reward === undefined)
      throw new CliError('No reward', {
        details: 'Give --reward <module>: it exports (answer, task) => number as its default.',
        exitCode: 2,
      });
  },
  prepare,
};
const CALIBRATION_GROUPS = 8;
/** As many batches in a row that teach nothing are no chance. */
const USELESS_BATCHES = 8;

/** Reinforcement learning on a file of tasks and a module that grades answers. */
export default async function grpo(context: Context, given: Given<typeof GRPO>, data?: string): Promise<number> {
  if (given.calibrate === undefined) return runCommand(context, KIND, given, data);
  refusePipe(data, '--calibrate');
  const { config } = await planRun(KIND, given, data, context.now());
  KIND.check(config);
  const groups = given.calibrate === true ? CALIBRATION_GROUPS : given.calibrate;
  return withService(context, (service) => calibrated(context, service, config, groups));
}

async function prepare(run: OpenRun<GrpoConfig>): Promise<RunWork> {
  const { context, service, config, folder, resume, trainer, renderer, baseModel } = run;
  const { groupsPerBatch, klPenalty } = config;
  const learningRate = config.learningRate ?? (await rlLearningRate(baseModel));
  const agent = await loadReward(config.reward!, renderer, samplingOf(config));
  const tasks = await rowsOf(config.data);
  const found = await countRows(context, config.data, tasks, 'task');
  warnOfFewRows(context, found, groupsPerBatch, 'task', '--groups-per-batch');
  const totalSteps = config.steps ?? Math.ceil((found * config.epochs) / groupsPerBatch);
  if (altersSampling(config)) {
    note(
      context,
      `Warning: sampling at temperature ${config.temperature}: services differ in which log probabilities they return then, ` +
        `so look at optim/kl_sample_train_v1 of the first step, which should be near 0`,
    );
  }
  const { reinforce, rlLog } = await import('../../../rl/index.js');
  const { repeatEpochs } = await import('../../../operators/index.js');
  const nothing$ = new Subject<void>();
  const enough = Math.max(found, USELESS_BATCHES * groupsPerBatch);
  let [untaught, isUseless] = [0, false];
  const options = {
    group: config.group,
    groupsPerBatch,
    maxStepsOffPolicy: config.maxStepsOffPolicy,
    minibatches: config.minibatches,
    loss: config.loss as RlLoss,
    adam: { learningRate },
    seed: config.seed,
    checkpoint: { steps: config.checkpointEvery, kind: 'both' as const, atEnd: true },
    resume: resume.rl,
    ...(klPenalty === undefined
      ? {}
      : { klPenalty: { coefficient: klPenalty, reference: await service.createSamplingClient({ baseModel }) } }),
    ...(altersSampling(config) ? { acceptAlteredSampling: true } : {}),
    onEvent: (event: RlEvent) => {
      if (event.type === 'rl-warning') note(context, `Warning: ${event.message}`);
      if (event.type === 'groups-untaught')
        note(
          context,
          `The last ${count(event.groups, 'group')} taught nothing: mean reward ${event.reward.toFixed(3)}`,
        );
      if (event.type !== 'batch-skipped') return;
      note(context, `${count(event.groups, 'group')} taught nothing: ${event.reason}`);
      untaught += event.groups;
      // With --steps the tasks are repeated: without an end to it, tasks that teach nothing would be paid for again and again.
      if (config.steps === undefined || isUseless || untaught < enough) return;
      isUseless = true;
      note(context, `Stopping: ${count(untaught, 'group')} in a row taught nothing, a whole pass over the tasks.`);
      nothing$.next();
    },
  };
  const decode = (tokens: ArrayLike<number>) => renderer.tokenizer.decode(tokens);
  return {
    totalSteps,
    isMost: config.steps === undefined,
    fewer: 'a batch whose answers all have the same reward gives no step',
    about: ` of ${groupsPerBatch} × ${config.group} rollouts, learning rate ${learningRate}`,
    nothing: [
      'No group had answers of different reward: nothing was trained',
      { details: 'The same command with --calibrate says what there is to learn.' },
    ],
    decode,
    steps: ({ stop$, counted, guarded }) =>
      tasks.pipe(
        repeatEpochs(config.steps === undefined ? { epochs: config.epochs } : {}),
        guarded(),
        reinforce<TaskRow>(trainer, agent, { ...options, steps: totalSteps, stop$: merge(stop$, nothing$) }),
        tap(() => (untaught = 0)),
        counted(),
        rlLog(folder, { config: { ...config, learningRate }, decode }),
      ),
    told: (last) => [['Reward', last?.metrics['env/all/reward/total']]],
    detail: ({ metrics }) => `reward ${(metrics['env/all/reward/total'] ?? NaN).toFixed(3)}`,
  };
}

async function calibrated(
  context: Context,
  service: ServiceClient,
  config: GrpoConfig,
  groups: number,
): Promise<number> {
  const { model, from } = config;
  const source = from === undefined ? { baseModel: model! } : { modelPath: from };
  const sampler = await waitFor(context, 'opening the model', service.createSamplingClient(source), service.events$);
  const renderer = await loadRenderer(context, () => sampler.getRenderer(config.renderer), service.events$);
  const agent = await loadReward(config.reward!, renderer, samplingOf(config));
  const tasks = await rowsOf(config.data);
  const found = await countRows(context, config.data, tasks, 'task');
  const { group, groupsPerBatch, seed } = config;
  const decode = (tokens: ArrayLike<number>) => renderer.tokenizer.decode(tokens);
  const steps = config.steps ?? Math.ceil((found * config.epochs) / groupsPerBatch);
  await waitFor(
    context,
    'sampling',
    calibrate(context, { tasks, agent, sampler, group, groups, groupsPerBatch, steps, seed, decode }),
    service.events$,
  );
  return 0;
}

const altersSampling = ({ temperature = 1 }: GrpoConfig): boolean => temperature !== 1;

const samplingOf = ({ maxTokens, temperature }: GrpoConfig): { maxTokens: number; temperature?: number } => ({
  maxTokens,
  ...(temperature === undefined ? {} : { temperature }),
});

/** A tenth of what supervised training starts from: rewards are noisier than examples. */
async function rlLearningRate(model: string): Promise<number> {
  return (await learningRateFor(model)) / (model.startsWith('tinker-rx/') ? 3 : 10);
}
