import { firstValueFrom, take, takeUntil } from 'rxjs';
import type { ServiceClient } from '../../../client/index.js';
import type { RlLoss, RlResumePoint } from '../../../rl/index.js';
import { withService } from '../../clients.js';
import { CliError } from '../../CliError.js';
import { note, type Context } from '../../context.js';
import { count } from '../../output/format.js';
import { calibrate } from './calibrate.js';
import { rowsOf } from './rowsOf.js';
import { loadReward, type TaskRow } from './loadReward.js';
import { loadRenderer } from '../../loadRenderer.js';
import { countRows } from '../countRows.js';
import { followRun, openTrainer, reportRun, resumeCommand, type Outcome } from '../followRun.js';
import { learningRateFor } from '../learningRateFor.js';
import { planFolder, type RunConfig, type RunFolderOptions, type RunPlan, type RunShape } from '../runFolder.js';
import { waitFor } from '../../terminal/waitFor.js';

interface GrpoConfig extends RunConfig {
  /** The module that grades answers. */
  readonly reward?: string;
  readonly loss: string;
  readonly group: number;
  readonly groupsPerBatch: number;
  readonly maxStepsOffPolicy: number;
  readonly minibatches: number;
  readonly rank: number;
  readonly learningRate?: number;
  readonly maxTokens: number;
  readonly temperature?: number;
  readonly klPenalty?: number;
  readonly epochs: number;
  readonly steps?: number;
  readonly renderer?: string;
  readonly seed: number;
  readonly checkpointEvery: number;
}

type GrpoCommandOptions = RunFolderOptions & Partial<GrpoConfig> & { readonly calibrate?: number | true };

const SHAPE: RunShape<GrpoConfig> = {
  command: 'grpo',
  defaults: {
    loss: 'importance_sampling',
    group: 16,
    groupsPerBatch: 32,
    maxStepsOffPolicy: 0,
    minibatches: 1,
    rank: 32,
    maxTokens: 512,
    epochs: 1,
    seed: 0,
    checkpointEvery: 20,
  },
  others: ['reward', 'learningRate', 'temperature', 'klPenalty', 'steps', 'renderer'],
  mayChange: ['checkpointEvery'],
};
const CALIBRATION_GROUPS = 8;

/** Reinforcement learning on a file of tasks and a module that grades answers. */
export default async function grpo(context: Context, options: GrpoCommandOptions, data?: string): Promise<number> {
  const plan = await planFolder(SHAPE, options as never, data, context.now());
  if (plan.config.reward === undefined) {
    throw new CliError('No reward', {
      details: 'Give --reward <module>: it exports (answer, task) => number as its default.',
      exitCode: 2,
    });
  }
  const { resumeRl } = await import('../../../rl/index.js');
  if (options.calibrate !== undefined) {
    const groups = options.calibrate === true ? CALIBRATION_GROUPS : options.calibrate;
    return withService(context, (service) => calibrated(context, service, plan.config, groups));
  }
  const resume = plan.resumed ? await firstValueFrom(resumeRl(plan.folder)) : { steps: 0, batches: 0 };
  let outcome: Outcome;
  try {
    outcome = await withService(context, (service) => run(context, service, plan, resume));
  } catch (error) {
    const { checkpoint } = await firstValueFrom(resumeRl(plan.folder));
    if (checkpoint !== undefined)
      note(context, `Continue from step ${checkpoint.steps} with: ${resumeCommand('grpo', plan.folder)}`);
    throw error;
  }
  const reward = outcome.last?.metrics['env/all/reward/total'];
  return reportRun(context, 'grpo', plan.folder, outcome, reward === undefined ? [] : [['Reward', reward]]);
}

async function run(
  context: Context,
  service: ServiceClient,
  plan: RunPlan<GrpoConfig>,
  resume: RlResumePoint,
): Promise<Outcome> {
  const { config, folder } = plan;
  const { groupsPerBatch, klPenalty } = config;
  const trainer = await waitFor(context, 'opening the model', openTrainer(service, config, resume), service.events$);
  const renderer = await loadRenderer(context, () => trainer.getRenderer(config.renderer), service.events$);
  const baseModel = config.model ?? (await trainer.getInfo()).modelData.modelName ?? '';
  const learningRate = config.learningRate ?? (await rlLearningRate(baseModel));
  const agent = await loadReward(config.reward!, renderer, samplingOf(config));
  const tasks = await rowsOf(config.data);
  const found = await countRows(context, config.data, tasks, 'task');
  const totalSteps = config.steps ?? Math.ceil((found * config.epochs) / groupsPerBatch);
  note(
    context,
    `${count(totalSteps, 'step')} of ${groupsPerBatch} × ${config.group} rollouts, learning rate ${learningRate}, log in ${folder}` +
      (resume.steps > 0 ? `, resumed after step ${resume.steps}` : ''),
  );
  if (altersSampling(config)) {
    note(
      context,
      `Warning: sampling at temperature ${config.temperature}: services differ in which log probabilities they return then, ` +
        `so look at optim/kl_sample_train_v1 of the first step, which should be near 0`,
    );
  }
  const { reinforce, rlLog } = await import('../../../rl/index.js');
  const { repeatEpochs } = await import('../../../operators/index.js');
  const learning = reinforce<TaskRow>(trainer, agent, {
    group: config.group,
    groupsPerBatch,
    maxStepsOffPolicy: config.maxStepsOffPolicy,
    minibatches: config.minibatches,
    loss: config.loss as RlLoss,
    adam: { learningRate },
    seed: config.seed,
    checkpoint: { steps: config.checkpointEvery, kind: 'both', atEnd: true },
    resume: resume.rl,
    ...(klPenalty === undefined
      ? {}
      : { klPenalty: { coefficient: klPenalty, reference: await service.createSamplingClient({ baseModel }) } }),
    ...(altersSampling(config) ? { acceptAlteredSampling: true } : {}),
    onEvent: (event) => {
      if (event.type === 'rl-warning') note(context, `Warning: ${event.message}`);
      if (event.type === 'batch-skipped')
        note(context, `${count(event.groups, 'group')} taught nothing: ${event.reason}`);
      if (event.type === 'rollout-failed' && event.final) note(context, `A rollout failed: ${String(event.error)}`);
    },
  });
  return followRun(context, service, {
    plan,
    model: baseModel,
    totalSteps,
    resume,
    nothing: [
      'No group had answers of different reward: nothing was trained',
      { details: 'The same command with --calibrate says what there is to learn.' },
    ],
    decode: (tokens) => renderer.tokenizer.decode(tokens),
    steps: (stop$, counted) =>
      tasks.pipe(
        repeatEpochs(config.steps === undefined ? { epochs: config.epochs } : {}),
        take(totalSteps * groupsPerBatch),
        takeUntil(stop$),
        learning,
        counted(),
        rlLog(folder, {
          config: { ...config, learningRate },
          decode: (tokens) => renderer.tokenizer.decode(tokens),
        }),
      ),
  });
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
  const steps = config.steps ?? Math.ceil((found * config.epochs) / groupsPerBatch);
  await waitFor(
    context,
    'sampling',
    calibrate(context, { tasks, agent, sampler, group, groups, groupsPerBatch, steps, seed }),
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
