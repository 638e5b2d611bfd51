import { map, type Observable, take } from 'rxjs';
import type { Message } from '../../chat/renderers/core/Message.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';
import type { Given } from '../declare.js';
import { readPrompts } from '../sample/readPrompts.js';
import { countRows, warnOfFewRows } from './countRows.js';
import type { RunWork } from './followRun.js';
import { learningRateFor } from './learningRateFor.js';
import { DISTILL, type Config } from './options.js';
import { runCommand, type OpenRun, type RunKind } from './runCommand.js';
import { modelOf } from '../modelOf.js';

type DistillConfig = Config<typeof DISTILL>;

const KIND: RunKind<typeof DISTILL> = {
  name: 'distill',
  options: DISTILL,
  isRl: true,
  check: ({ teacher, teacherSystem }) => {
    if (teacher === undefined && teacherSystem === undefined)
      throw new CliError('No teacher', {
        details: 'Give --teacher <model>, or --teacher-system <text> to teach it a system prompt.',
        exitCode: 2,
      });
  },
  prepare,
};

/** Distils teachers into a model, on answers that the model gives itself. */
export default (context: Context, given: Given<typeof DISTILL>, data?: string): Promise<number> =>
  runCommand(context, KIND, given, data);

async function prepare(run: OpenRun<DistillConfig>): Promise<RunWork> {
  const { context, service, config, folder, resume, trainer, renderer, baseModel } = run;
  const { teacherSystem, groupsPerBatch } = config;
  const teachers = await openTeachers(service, config.teacher ?? [baseModel]);
  const learningRate = config.learningRate ?? (await learningRateFor(baseModel));
  const prompts = promptsOf(context, config.data);
  const most = config.steps === undefined ? Infinity : config.steps * groupsPerBatch;
  const found = await countRows(context, config.data, prompts.pipe(take(most)), 'prompt');
  warnOfFewRows(context, found, groupsPerBatch, 'prompt', '--groups-per-batch');
  const totalSteps = config.steps ?? Math.ceil((found * config.epochs) / groupsPerBatch);
  const { distill, rlLog } = await import('../../rl/index.js');
  const { repeatEpochs } = await import('../../operators/index.js');
  const forTeacher = (messages: readonly Message[]) =>
    renderer.buildGenerationPrompt([{ role: 'system', content: teacherSystem! }, ...messages]);
  const options = {
    teacher: teachers,
    coefficient: config.coefficient,
    ...(teacherSystem === undefined ? {} : { teacherPrompt: forTeacher }),
    renderer,
    prompt: (messages: readonly Message[]) => messages,
    group: config.group,
    groupsPerBatch,
    samplingParams: { maxTokens: config.maxTokens },
    adam: { learningRate },
    seed: config.seed,
    checkpoint: { steps: config.checkpointEvery, kind: 'both', atEnd: true },
    resume: resume.rl,
    steps: totalSteps,
  } as const;
  const decode = (tokens: ArrayLike<number>) => renderer.tokenizer.decode(tokens);
  return {
    totalSteps,
    about: `, learning rate ${learningRate}`,
    steps: ({ stop$, counted, guarded }) =>
      prompts.pipe(
        repeatEpochs(config.steps === undefined ? { epochs: config.epochs } : {}),
        guarded(),
        distill<readonly Message[]>(trainer, { ...options, stop$ }),
        counted(),
        rlLog(folder, { config: { ...config, learningRate }, decode }),
      ),
    told: (last) => [['Teacher KL', last?.metrics['env/all/teacher_kl']]],
    detail: ({ metrics }) => `teacher KL ${(metrics['env/all/teacher_kl'] ?? NaN).toFixed(4)}`,
    decode,
  };
}

async function openTeachers(
  service: ServiceClient,
  names: readonly string[],
): Promise<readonly { readonly teacher: SamplingClient; readonly weight: number }[]> {
  const opened = names.map(async (name) => service.createSamplingClient((await modelOf(name)).source));
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
