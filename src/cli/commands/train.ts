import { basename, relative } from 'node:path';
import { identity, lastValueFrom, ReplaySubject, Subject, takeUntil, firstValueFrom, tap } from 'rxjs';
import type { ServiceClient, TrainingClient } from '../../client/index.js';
import type { Dashboard } from '../../dashboard/index.js';
import type { Step } from '../../operators/step.js';
import type { Checkpoint } from '../../operators/trainingBatch.js';
import type { ResumePoint } from '../../sources/resumeFrom.js';
import type { SourceEvent } from '../../sources/index.js';
import { withService } from '../clients.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { count, shellWord } from '../format.js';
import { loadRenderer } from '../loadRenderer.js';
import { printProperties } from '../print.js';
import { learningRateFor } from '../train/learningRateFor.js';
import { countExamples, readValidation } from '../train/readExamples.js';
import { RowReport } from '../train/RowReport.js';
import {
  planRun,
  resumeCommand,
  type TrainCommandOptions,
  type TrainConfig,
  type TrainPlan,
} from '../train/TrainConfig.js';
import { trainingSteps } from '../train/trainingSteps.js';
import { waitFor } from '../waitFor.js';

interface Outcome {
  readonly last: Step | undefined;
  /** The last validation loss. */
  readonly validated: number | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly interrupted: boolean;
}

/** Trains on a file of conversations, with a log that the run can be gone on with from. */
export default async function train(context: Context, options: TrainCommandOptions, data?: string): Promise<number> {
  const plan = await planRun(options, data, context.now());
  const { resumeFrom } = await import('../../sources/index.js');
  const resume = plan.resumed ? await firstValueFrom(resumeFrom(plan.folder)) : { steps: 0, batches: 0 };
  let outcome: Outcome;
  try {
    outcome = await withService(context, (service) => runSteps(context, service, plan, resume));
  } catch (error) {
    const { checkpoint } = await firstValueFrom(resumeFrom(plan.folder));
    if (checkpoint !== undefined)
      note(context, `Go on from step ${checkpoint.steps} with: ${resumeCommand(plan.folder)}`);
    throw error;
  }
  return report(context, plan, outcome);
}

async function runSteps(
  context: Context,
  service: ServiceClient,
  plan: TrainPlan,
  resume: ResumePoint,
): Promise<Outcome> {
  const { config, folder } = plan;
  const trainer = await waitFor(context, 'opening the model', openTrainer(service, config, resume), service.events$);
  const renderer = await loadRenderer(context, () => trainer.getRenderer(config.renderer), service.events$);
  const examples = config.steps === undefined ? await countExamples(context, config, renderer) : 0;
  const validation =
    config.validation === undefined ? [] : await readValidation(context, config, renderer, config.validation);
  const totalSteps = config.steps ?? Math.ceil((examples * config.epochs) / config.batchSize);
  const learningRate = config.learningRate ?? (await learningRateFor(await baseModelOf(trainer, config)));
  note(
    context,
    `${count(totalSteps, 'step')}, learning rate ${learningRate}, log in ${folder}${resume.steps > 0 ? `, going on after step ${resume.steps}` : ''}`,
  );

  const { metricsLog, progressBar } = await import('../../sinks/index.js');
  const stop$ = new ReplaySubject<void>(1);
  const abort$ = new ReplaySubject<void>(1);
  let presses = 0;
  let last: Step | undefined;
  let validated: number | undefined;
  let checkpoint: Checkpoint | undefined = resume.checkpoint;
  const listening = context.interrupted$.subscribe(() => {
    presses++;
    if (presses === 1)
      note(context, 'Finishing the steps in flight and saving a checkpoint; Ctrl-C again stops at once.');
    (presses === 1 ? stop$ : abort$).next();
  });
  const dashboard = plan.dashboard === undefined ? undefined : await openDashboard(context, service, plan.dashboard);
  const source$ = new Subject<SourceEvent>();
  const rows = new RowReport(config.data);
  const onEvent = (event: SourceEvent) => {
    rows.take(event);
    source$.next(event);
  };
  const given = { config, learningRate, totalSteps, trainer, renderer, resume, validation, stop$, onEvent };
  const steps = await trainingSteps(given);
  try {
    await lastValueFrom(
      steps.pipe(
        dashboard?.showSteps(basename(folder)) ?? identity,
        metricsLog(folder, { config: { ...config, learningRate } }),
        progressBar({ total: totalSteps, source$, events$: service.events$, stream: context.stderr }),
        tap((step) => {
          last = step;
          validated = step.evaluations?.at(-1)?.metrics['validation_loss'] ?? validated;
          checkpoint = step.checkpoint ?? checkpoint;
        }),
        takeUntil(abort$),
      ),
      { defaultValue: undefined },
    );
  } finally {
    listening.unsubscribe();
    await dashboard?.close();
    // With --steps the file was not read before.
    if (config.steps !== undefined) {
      if (rows.losses !== '') note(context, `${basename(config.data)}${rows.losses.replace(',', ':')}`);
      if (rows.unused !== undefined) note(context, rows.unused);
    }
  }
  if (presses > 1) await service.destroy();
  return { last, validated, checkpoint, interrupted: presses > 0 && (last?.index ?? -1) + 1 < totalSteps };
}

async function openDashboard(context: Context, service: ServiceClient, port: number | true): Promise<Dashboard> {
  const { serveDashboard } = await import('../../dashboard/index.js');
  const dashboard = await serveDashboard({ service }, { port: port === true ? 0 : port });
  note(context, `Dashboard: ${dashboard.url}`);
  return dashboard;
}

function openTrainer(
  service: ServiceClient,
  { model, from, rank, seed }: TrainConfig,
  { checkpoint }: ResumePoint,
): PromiseLike<TrainingClient> {
  if (checkpoint !== undefined) return service.createTrainingClientFromStateWithOptimizer(checkpoint.statePath);
  if (from !== undefined) return service.createTrainingClientFromState(from);
  return service.createLoraTrainingClient({ baseModel: model!, rank, seed });
}

async function baseModelOf(trainer: TrainingClient, { model }: TrainConfig): Promise<string> {
  return model ?? (await trainer.getInfo()).modelData.modelName ?? '';
}

function report(
  context: Context,
  { folder }: TrainPlan,
  { last, validated, checkpoint, interrupted }: Outcome,
): number {
  const { statePath, samplerPath, steps = 0 } = checkpoint ?? {};
  if (interrupted) {
    note(
      context,
      `Stopped; ${steps === 0 ? 'nothing is saved yet' : `saved after step ${steps}`}. Go on with: ${resumeCommand(folder)}`,
    );
    return INTERRUPTED;
  }
  if (last === undefined) note(context, 'The run was finished already.');
  printProperties(
    context,
    [
      ['Steps', String(steps)],
      ...(last === undefined ? [] : [['Loss', last.loss.toFixed(4)] as const]),
      ...(validated === undefined ? [] : [['Validation loss', validated.toFixed(4)] as const]),
      ['Log', folder],
      ...(statePath === undefined ? [] : [['Checkpoint', statePath] as const]),
      ...(samplerPath === undefined ? [] : [['Sampler', samplerPath] as const]),
    ],
    () => ({
      steps,
      loss: last?.loss ?? null,
      ...(validated === undefined ? {} : { validation_loss: validated }),
      log: folder,
      state_path: statePath ?? null,
      sampler_path: samplerPath ?? null,
    }),
  );
  note(context, `Its curves: tinker-rx dashboard --log ${shellWord(relative('.', folder) || '.')}`);
  if (samplerPath !== undefined) note(context, `Talk to it: tinker-rx chat --model ${shellWord(samplerPath)}`);
  return 0;
}
