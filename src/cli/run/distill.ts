import { firstValueFrom, map, type Observable, take, takeUntil } from 'rxjs';
import type { Message } from '../../chat/renderers/Message.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import type { RlResumePoint } from '../../rl/log/resumeRl.js';
import { withService } from '../clients.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import { count } from '../output/format.js';
import { loadRenderer } from '../loadRenderer.js';
import { readPrompts } from '../sample/readPrompts.js';
import { countRows } from './countRows.js';
import { followRun, openTrainer, type Outcome, reportRun, resumeCommand } from './followRun.js';
import { learningRateFor } from './learningRateFor.js';
import { planFolder, type RunConfig, type RunFolderOptions, type RunPlan, type RunShape } from './runFolder.js';
import { waitFor } from '../terminal/waitFor.js';

interface DistillConfig extends RunConfig {
  /** Base models or paths of weights to sample from; their words count alike. */
  readonly teacher?: readonly string[];
  /** A system message that only the teachers read. */
  readonly teacherSystem?: string;
  readonly coefficient: number;
  readonly rank: number;
  readonly learningRate?: number;
  readonly batchSize: number;
  readonly group: number;
  readonly maxTokens: number;
  readonly epochs: number;
  readonly steps?: number;
  readonly renderer?: string;
  readonly seed: number;
  readonly checkpointEvery: number;
}

const SHAPE: RunShape<DistillConfig> = {
  command: 'distill',
  defaults: {
    coefficient: 1,
    rank: 32,
    batchSize: 64,
    group: 4,
    maxTokens: 512,
    epochs: 1,
    seed: 0,
    checkpointEvery: 20,
  },
  others: ['teacher', 'teacherSystem', 'learningRate', 'steps', 'renderer'],
  mayChange: ['checkpointEvery'],
};

/** Distils teachers into a model, on answers that the model gives itself. */
export default async function distill(
  context: Context,
  options: RunFolderOptions & Partial<DistillConfig>,
  data?: string,
): Promise<number> {
  const plan = await planFolder(SHAPE, options as never, data, context.now());
  if (plan.config.teacher === undefined && plan.config.teacherSystem === undefined)
    throw new CliError('No teacher', {
      details: 'Give --teacher <model>, or --teacher-system <text> to teach it a system prompt.',
      exitCode: 2,
    });
  const { resumeRl } = await import('../../rl/index.js');
  const resume = plan.resumed ? await firstValueFrom(resumeRl(plan.folder)) : { steps: 0, batches: 0 };
  let outcome: Outcome;
  try {
    outcome = await withService(context, (service) => run(context, service, plan, resume));
  } catch (error) {
    const { checkpoint } = await firstValueFrom(resumeRl(plan.folder));
    if (checkpoint !== undefined)
      note(context, `Continue from step ${checkpoint.steps} with: ${resumeCommand('distill', plan.folder)}`);
    throw error;
  }
  const apart = outcome.last?.metrics['env/all/teacher_kl'];
  return reportRun(
    context,
    'distill',
    plan.folder,
    outcome,
    apart === undefined ? [] : [['Teacher KL', apart] as const],
  );
}

async function run(
  context: Context,
  service: ServiceClient,
  plan: RunPlan<DistillConfig>,
  resume: RlResumePoint,
): Promise<Outcome> {
  const { config, folder } = plan;
  const { teacherSystem, batchSize } = config;
  const trainer = await waitFor(context, 'opening the model', openTrainer(service, config, resume), service.events$);
  const renderer = await loadRenderer(context, () => trainer.getRenderer(config.renderer), service.events$);
  const baseModel = config.model ?? (await trainer.getInfo()).modelData.modelName ?? '';
  const teachers = await openTeachers(service, config.teacher ?? [baseModel]);
  const learningRate = config.learningRate ?? (await learningRateFor(baseModel));
  const prompts = promptsOf(context, config.data);
  const found = config.steps === undefined ? await countRows(context, config.data, prompts, 'prompt') : 0;
  const totalSteps = config.steps ?? Math.ceil((found * config.epochs) / batchSize);
  note(
    context,
    `${count(totalSteps, 'step')}, learning rate ${learningRate}, log in ${folder}` +
      (resume.steps > 0 ? `, resumed after step ${resume.steps}` : ''),
  );
  const { distill: distilling, rlLog } = await import('../../rl/index.js');
  const { repeatEpochs } = await import('../../operators/index.js');
  const told = (messages: readonly Message[]) =>
    renderer.buildGenerationPrompt([{ role: 'system', content: teacherSystem! }, ...messages]);
  const learning = distilling<readonly Message[]>(trainer, {
    teacher: teachers,
    coefficient: config.coefficient,
    ...(teacherSystem === undefined ? {} : { teacherPrompt: told }),
    renderer,
    prompt: (messages) => messages,
    group: config.group,
    groupsPerBatch: batchSize,
    samplingParams: { maxTokens: config.maxTokens },
    adam: { learningRate },
    seed: config.seed,
    checkpoint: { steps: config.checkpointEvery, kind: 'both', atEnd: true },
    resume: resume.rl,
  });
  return followRun(context, service, {
    plan,
    model: baseModel,
    totalSteps,
    resume,
    steps: (stop$, counted) =>
      prompts.pipe(
        repeatEpochs(config.steps === undefined ? { epochs: config.epochs } : {}),
        take(totalSteps * batchSize),
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

async function openTeachers(
  service: ServiceClient,
  names: readonly string[],
): Promise<readonly { readonly teacher: SamplingClient; readonly weight: number }[]> {
  const opened = names.map(async (name) =>
    service.createSamplingClient(name.startsWith('tinker://') ? { modelPath: name } : { baseModel: name }),
  );
  return (await Promise.all(opened)).map((teacher) => ({ teacher, weight: 1 }));
}

/** The prompts of a file as conversations. */
function promptsOf(context: Context, file: string): Observable<readonly Message[]> {
  return readPrompts(context, { words: [], file }).prompts.pipe(
    map((prompt) => {
      if (prompt.kind === 'chat') return prompt.messages;
      throw new CliError(`${file}:${prompt.line ?? 1}: ${prompt.kind === 'bad' ? prompt.reason : 'no prompt'}`);
    }),
  );
}
