import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { firstValueFrom } from 'rxjs';
import { servingHint } from '../../adapters/servers.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { ServiceClient, TrainingClient } from '../../client/index.js';
import type { RlResumePoint } from '../../rl/index.js';
import { lockFolder } from '../../support/files/lockFolder.js';
import type { LossFnType } from '../../wire/training.js';
import { CliError } from '../CliError.js';
import { withService } from '../clients.js';
import { note, type Context } from '../context.js';
import type { Given } from '../declare.js';
import { loadRenderer } from '../loadRenderer.js';
import { count } from '../output/format.js';
import { waitFor } from '../terminal/waitFor.js';
import { checkService } from './checkService.js';
import { followRun, type Outcome, type RunWork } from './followRun.js';
import type { Config, RunOptions } from './options.js';
import { planRun, refuseOldRun, resumeCommand, type RunCommand, type RunPlan } from './planRun.js';
import { reportRun } from './reportRun.js';

/** What a command that trains does in its own way. */
export interface RunKind<O extends RunOptions> extends RunCommand<O> {
  /** Its log is that of reinforcement learning. */
  readonly isRl?: true;
  /** A loss of the service that it needs. */
  readonly loss?: (config: Config<O>) => LossFnType;
  /** Refuses what cannot work, before the service is asked for anything. @throws CliError */
  readonly check?: (config: Config<O>) => void;
  readonly prepare: (run: OpenRun<Config<O>>) => Promise<RunWork>;
}

/** A run whose model is open. */
export interface OpenRun<C> {
  readonly context: Context;
  readonly service: ServiceClient;
  readonly config: C;
  readonly folder: string;
  readonly resume: RlResumePoint;
  readonly trainer: TrainingClient;
  readonly renderer: Renderer;
  readonly baseModel: string;
}

/** What the options of every command that trains say about the model. */
interface Start {
  readonly model?: string;
  readonly from?: string;
  readonly renderer?: string;
  readonly rank: number;
  readonly seed: number;
  readonly trainMlp: boolean;
  readonly trainAttn: boolean;
  readonly trainUnembed: boolean;
}

/** Runs a command that trains: plan → lock → resume → service → trainer → renderer → steps → report. */
export async function runCommand<O extends RunOptions>(
  context: Context,
  kind: RunKind<O>,
  given: Given<O>,
  data: string | undefined,
): Promise<number> {
  const plan = await planRun(kind, given, data, context.now());
  kind.check?.(plan.config);
  const { epochs } = given as { readonly epochs?: number };
  const { steps } = plan.config as { readonly steps?: number };
  if (steps !== undefined && epochs !== undefined)
    note(context, `Warning: --steps ${steps} counts; --epochs ${epochs} does not`);
  const unlock = await lockFolder(plan.folder, context.now);
  try {
    if (!plan.resumed) refuseOldRun(kind.name, plan.folder);
    if (plan.isPiped === true) await keepStdin(context, (plan.config as { readonly data: string }).data);
    return await runLocked(context, kind, plan, given);
  } finally {
    await unlock();
  }
}

/** Writes what is piped in into the file of the run. */
async function keepStdin(context: Context, file: string): Promise<void> {
  if (context.stdin.isTTY === true)
    throw new CliError('Nothing is piped in', { details: 'Pipe the data in, or give a file.', exitCode: 2 });
  await waitFor(context, 'reading stdin', pipeline(context.stdin, createWriteStream(file)));
}

async function runLocked<O extends RunOptions>(
  context: Context,
  kind: RunKind<O>,
  plan: RunPlan<Config<O>>,
  given: Given<O>,
): Promise<number> {
  const resume: RlResumePoint = plan.resumed ? await resumePoint(context, kind, plan.folder) : { steps: 0, batches: 0 };
  const { dashboard } = given as { readonly dashboard?: number | true };
  let outcome: Outcome;
  try {
    outcome = await withService(context, async (service) => {
      const run = await openRun(context, service, kind, plan, resume);
      const work = await kind.prepare(run);
      note(
        context,
        `${work.isMost === true ? 'Up to ' : ''}${count(work.totalSteps, 'step')}${work.about}, log in ${plan.folder}` +
          (resume.steps > 0 ? `, continuing after step ${resume.steps}` : ''),
      );
      return followRun(run, work, dashboard);
    });
  } catch (error) {
    const { checkpoint } = await resumePoint(context, kind, plan.folder);
    // The checkpoint that this process started from is gone: the same command would fail again.
    const isGone = codeOf(error) === 'not_found' && checkpoint?.statePath === resume.checkpoint?.statePath;
    if (checkpoint !== undefined && !isGone) {
      const flags = 'skipBadRows' in kind.options && codeOf(error) === 'bad_row' ? '--skip-bad-rows' : '';
      note(context, `Continue from step ${checkpoint.steps} with: ${resumeCommand(kind.name, plan.folder, flags)}`);
    }
    throw error;
  }
  return reportRun(context, kind.name, plan.folder, outcome);
}

const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown } | undefined)?.code;

async function resumePoint(
  context: Context,
  { isRl }: Pick<RunKind<RunOptions>, 'isRl'>,
  folder: string,
): Promise<RlResumePoint> {
  const onWarning = (message: string) => note(context, `Warning: ${message}`);
  if (isRl === true) return firstValueFrom((await import('../../rl/index.js')).resumeRl(folder, { onWarning }));
  return firstValueFrom((await import('../../sources/index.js')).resumeFrom(folder));
}

async function openRun<O extends RunOptions>(
  context: Context,
  service: ServiceClient,
  kind: RunKind<O>,
  { config, folder }: RunPlan<Config<O>>,
  resume: RlResumePoint,
): Promise<OpenRun<Config<O>>> {
  const start = config as unknown as Start;
  if (kind.loss !== undefined) await checkService(context, service, start.model, kind.loss(config));
  const trainer = await waitFor(context, 'opening the model', openTrainer(service, start, resume), service.events$);
  const renderer = await loadRenderer(context, () => trainer.getRenderer(start.renderer), service.events$);
  const baseModel = start.model ?? (await trainer.getInfo()).modelData.modelName ?? '';
  const hint = resume.checkpoint === undefined ? servingHint(baseModel, start.trainUnembed) : undefined;
  if (hint !== undefined) note(context, `Hint: ${hint}`);
  return { context, service, config, folder, resume, trainer, renderer, baseModel };
}

/** The model of a run: a new one, or as the newest checkpoint of the run has it. */
function openTrainer(
  service: ServiceClient,
  { model, from, rank, seed, trainMlp, trainAttn, trainUnembed }: Start,
  { checkpoint }: RlResumePoint,
): PromiseLike<TrainingClient> {
  if (checkpoint !== undefined) return service.createTrainingClientFromStateWithOptimizer(checkpoint.statePath);
  if (from !== undefined) return service.createTrainingClientFromState(from);
  return service.createLoraTrainingClient({ baseModel: model!, rank, seed, trainMlp, trainAttn, trainUnembed });
}
