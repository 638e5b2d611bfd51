import { basename } from 'node:path';
import { firstValueFrom, Subject, tap } from 'rxjs';
import type { ServiceClient, TrainingClient } from '../../../client/index.js';
import type { ResumePoint } from '../../../sources/resumeFrom.js';
import type { SourceEvent } from '../../../sources/index.js';
import { withService } from '../../clients.js';
import { note, type Context } from '../../context.js';
import { count } from '../../output/format.js';
import { loadRenderer } from '../../loadRenderer.js';
import { dryRun } from './dryRun.js';
import { followRun, openTrainer, type Outcome, reportRun, resumeCommand } from '../followRun.js';
import { learningRateFor } from '../learningRateFor.js';
import { countExamples, readValidation } from './readExamples.js';
import { RowReport } from './RowReport.js';
import { warnOfUse } from '../warnOfUse.js';
import { planRun, type TrainCommandOptions, type TrainConfig, type TrainPlan } from './TrainConfig.js';
import { trainingSteps } from './trainingSteps.js';
import { waitFor } from '../../terminal/waitFor.js';

interface Validated extends Outcome {
  /** The last validation loss. */
  readonly validated: number | undefined;
}

/** Trains on a file of conversations, with a log that the run can be gone on with from. */
export default async function train(context: Context, options: TrainCommandOptions, data?: string): Promise<number> {
  const plan = await planRun(options, data, context.now());
  if (options.dryRun === true) return dryRun(context, plan);
  const { resumeFrom } = await import('../../../sources/index.js');
  const resume = plan.resumed ? await firstValueFrom(resumeFrom(plan.folder)) : { steps: 0, batches: 0 };
  let outcome: Validated;
  try {
    outcome = await withService(context, (service) => runSteps(context, service, plan, resume));
  } catch (error) {
    const { checkpoint } = await firstValueFrom(resumeFrom(plan.folder));
    if (checkpoint !== undefined)
      note(context, `Continue from step ${checkpoint.steps} with: ${resumeCommand('train', plan.folder)}`);
    throw error;
  }
  const { last, validated } = outcome;
  return reportRun(context, 'train', plan.folder, outcome, [
    ...(last === undefined ? [] : [['Loss', last.loss] as const]),
    ...(validated === undefined ? [] : [['Validation loss', validated] as const]),
  ]);
}

async function runSteps(
  context: Context,
  service: ServiceClient,
  plan: TrainPlan,
  resume: ResumePoint,
): Promise<Validated> {
  const { config, folder } = plan;
  await warnOfUse(context, service, config.model, 'cross_entropy');
  const trainer = await waitFor(context, 'opening the model', openTrainer(service, config, resume), service.events$);
  const renderer = await loadRenderer(context, () => trainer.getRenderer(config.renderer), service.events$);
  const examples = config.steps === undefined ? await countExamples(context, config, renderer) : 0;
  const validation =
    config.validation === undefined ? [] : await readValidation(context, config, renderer, config.validation);
  const totalSteps = config.steps ?? Math.ceil((examples * config.epochs) / config.batchSize);
  const model = await baseModelOf(trainer, config);
  const learningRate = config.learningRate ?? (await learningRateFor(model));
  note(
    context,
    `${count(totalSteps, 'step')}, learning rate ${learningRate}, log in ${folder}${resume.steps > 0 ? `, continuing after step ${resume.steps}` : ''}`,
  );

  let validated: number | undefined;
  const source$ = new Subject<SourceEvent>();
  const rows = new RowReport(config.data);
  const onEvent = (event: SourceEvent) => {
    rows.take(event);
    source$.next(event);
  };
  const { metricsLog } = await import('../../../sinks/index.js');
  const given = { config, learningRate, totalSteps, trainer, renderer, resume, validation, onEvent };
  const steps = await trainingSteps(given);
  try {
    const outcome = await followRun(context, service, {
      plan,
      model,
      totalSteps,
      resume,
      steps: (stop$, counted) =>
        steps(stop$).pipe(
          counted(),
          metricsLog(folder, { config: { ...config, learningRate } }),
          tap((step) => (validated = step.evaluations?.at(-1)?.metrics['validation_loss'] ?? validated)),
        ),
      source$,
    });
    return { ...outcome, validated };
  } finally {
    // With --steps the file was not read before.
    if (config.steps !== undefined) {
      if (rows.losses !== '') note(context, `${basename(config.data)}${rows.losses.replace(',', ':')}`);
      if (rows.unused !== undefined) note(context, rows.unused);
    }
  }
}

async function baseModelOf(trainer: TrainingClient, { model }: TrainConfig): Promise<string> {
  return model ?? (await trainer.getInfo()).modelData.modelName ?? '';
}
