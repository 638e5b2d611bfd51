import { basename } from 'node:path';
import { count as counted, firstValueFrom, identity, map, type Observable, Subject, take, takeUntil } from 'rxjs';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { SamplingClient, ServiceClient, TrainingClient } from '../../client/index.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import { plainMetrics } from '../../operators/internal/plainMetrics.js';
import type { Step } from '../../operators/step.js';
import type { SourceEvent } from '../../sources/index.js';
import type { ResumePoint } from '../../sources/resumeFrom.js';
import { withService } from '../clients.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import { count } from '../output/format.js';
import { loadRenderer } from '../loadRenderer.js';
import { followRun, openTrainer, type Outcome, reportRun, resumeCommand } from './followRun.js';
import { planFolder, type RunConfig, type RunFolderOptions, type RunPlan, type RunShape } from './runFolder.js';
import { waitFor } from '../terminal/waitFor.js';

interface DpoConfig extends RunConfig {
  readonly loss: 'dpo' | 'ipo' | 'simpo' | 'orpo';
  readonly beta?: number;
  /** What the model is compared with: a base model, or the path of weights to sample from. Settled when the run begins. */
  readonly reference?: string;
  readonly rank: number;
  readonly learningRate: number;
  readonly batchSize: number;
  readonly epochs: number;
  readonly steps?: number;
  readonly maxLength?: number;
  readonly renderer?: string;
  readonly seed: number;
  readonly checkpointEvery: number;
  readonly ahead: number;
  readonly skipBadRows: boolean;
}

const SHAPE: RunShape<DpoConfig> = {
  command: 'dpo',
  defaults: {
    loss: 'dpo',
    rank: 32,
    learningRate: 1e-5,
    batchSize: 64,
    epochs: 1,
    seed: 0,
    checkpointEvery: 20,
    ahead: 2,
    skipBadRows: false,
  },
  others: ['beta', 'reference', 'steps', 'maxLength', 'renderer'],
  mayChange: ['checkpointEvery', 'ahead'],
};
const SHUFFLE_WINDOW = 4096;

/** Trains on a file of preferences, held to a reference that stays the same when the run is resumed. */
export default async function dpo(
  context: Context,
  options: RunFolderOptions & Partial<DpoConfig>,
  data?: string,
): Promise<number> {
  const plan = await planFolder(SHAPE, options as never, data, context.now());
  const { resumeFrom } = await import('../../sources/index.js');
  const resume = plan.resumed ? await firstValueFrom(resumeFrom(plan.folder)) : { steps: 0, batches: 0 };
  let outcome: Outcome;
  try {
    outcome = await withService(context, (service) => run(context, service, plan, resume));
  } catch (error) {
    const { checkpoint } = await firstValueFrom(resumeFrom(plan.folder));
    if (checkpoint !== undefined)
      note(context, `Continue from step ${checkpoint.steps} with: ${resumeCommand('dpo', plan.folder)}`);
    throw error;
  }
  const { loss, metrics } = outcome.last ?? {};
  const told = [
    ['Loss', loss] as const,
    ['Accuracy', metrics?.['accuracy']] as const,
    ['Margin', metrics?.['margin']] as const,
  ];
  const known = told.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const]));
  return reportRun(context, 'dpo', plan.folder, outcome, known);
}

async function run(
  context: Context,
  service: ServiceClient,
  plan: RunPlan<DpoConfig>,
  resume: ResumePoint,
): Promise<Outcome> {
  const { folder } = plan;
  const trainer = await waitFor(
    context,
    'opening the model',
    openTrainer(service, plan.config, resume),
    service.events$,
  );
  const renderer = await loadRenderer(context, () => trainer.getRenderer(plan.config.renderer), service.events$);
  const loss = await lossOf(plan.config);
  const config = await withSettledReference(trainer, plan.config, loss, resume);
  const reference = await openReference(service, config.reference);
  const pairs = config.steps === undefined ? await countPairs(context, config, renderer) : 0;
  const totalSteps = config.steps ?? Math.ceil((pairs * config.epochs) / config.batchSize);
  note(
    context,
    `${count(totalSteps, 'step')}, ${config.loss}, learning rate ${config.learningRate}, ` +
      `${config.reference === undefined ? '' : `reference ${config.reference}, `}log in ${folder}` +
      (resume.steps > 0 ? `, resumed after step ${resume.steps}` : ''),
  );
  const source$ = new Subject<SourceEvent>();
  const { metricsLog } = await import('../../sinks/index.js');
  const steps = await stepsOf({ config, totalSteps, trainer, renderer, reference, loss, resume, source$ });
  return followRun(context, service, {
    plan,
    model: config.model ?? (await trainer.getInfo()).modelData.modelName ?? '',
    totalSteps,
    resume,
    steps: (stop$, counted) => steps(stop$).pipe(counted(), metricsLog(folder, { config })),
    source$,
  });
}

interface StepsOptions {
  readonly config: DpoConfig;
  readonly totalSteps: number;
  readonly trainer: TrainingClient;
  readonly renderer: Renderer;
  readonly reference: SamplingClient | undefined;
  readonly loss: TracedLoss;
  readonly resume: ResumePoint;
  readonly source$: Subject<SourceEvent>;
}

async function stepsOf(options: StepsOptions): Promise<(stop$: Observable<void>) => Observable<Step>> {
  const { config, totalSteps, trainer, renderer, reference, loss, resume, source$ } = options;
  const { batch, checkpointEvery, continueFrom, linear, repeatEpochs, shuffle, toPairs, trainUntil, withReference } =
    await import('../../operators/index.js');
  const { fromPreferences } = await import('../../sources/index.js');
  const { seed, maxLength } = config;
  const rows = fromPreferences(config.data, {
    onBadRow: config.skipBadRows ? 'skip' : 'error',
    onEvent: (event) => source$.next(event),
  });
  const batches = rows.pipe(
    repeatEpochs({
      ...(config.steps === undefined ? { epochs: config.epochs } : {}),
      each: (each, epoch) => each.pipe(shuffle({ window: SHUFFLE_WINDOW, seed: seed + epoch })),
    }),
    toPairs(renderer, maxLength === undefined ? {} : { maxLength }),
    batch({ size: config.batchSize }),
    map((pairs) => pairs.flat()),
    continueFrom(resume),
    take(totalSteps - resume.batches),
  );
  return (stop$) =>
    batches.pipe(
      checkpointEvery({ steps: config.checkpointEvery, kind: 'both', atEnd: true }),
      reference === undefined ? identity : withReference<TrainingClient>(reference),
      // As trainPreferences does, but for a run that can be stopped.
      trainUntil(stop$, trainer, {
        loss,
        adam: { learningRate: linear(config.learningRate, { steps: totalSteps }), eps: 1e-8 },
        ahead: config.ahead,
        checkpoint: { kind: 'both' },
      }),
      plainMetrics(),
    );
}

async function lossOf({ loss, beta }: DpoConfig): Promise<TracedLoss> {
  const losses = await import('../../losses/index.js');
  if (loss === 'orpo') return losses.orpo(beta === undefined ? {} : { lambda: beta });
  return losses[loss](beta === undefined ? {} : { beta });
}

/** The reference for the whole run: the one asked for, else what training starts from. */
async function withSettledReference(
  trainer: TrainingClient,
  config: DpoConfig,
  loss: TracedLoss,
  { checkpoint }: ResumePoint,
): Promise<DpoConfig> {
  if (!loss.inputs.some(({ name }) => name.endsWith('reference_logprobs'))) return config;
  if (config.reference !== undefined) return config;
  if (config.from === undefined) return { ...config, reference: config.model! };
  // Weights that are trained already cannot be the reference of a run that began before them.
  if (checkpoint !== undefined) throw new CliError('The log of this run does not say what its reference was');
  const { path } = await trainer.saveWeightsForSampler('reference');
  return { ...config, reference: path };
}

async function openReference(
  service: ServiceClient,
  reference: string | undefined,
): Promise<SamplingClient | undefined> {
  if (reference === undefined) return undefined;
  return service.createSamplingClient(
    reference.startsWith('tinker://') ? { modelPath: reference } : { baseModel: reference },
  );
}

/** How many pairs the file has. Reads and tokenises all of it: a bad row is found before it costs a step. */
async function countPairs(context: Context, config: DpoConfig, renderer: Renderer): Promise<number> {
  const { fromPreferences } = await import('../../sources/index.js');
  const { toPairs } = await import('../../operators/index.js');
  const { data, skipBadRows, maxLength } = config;
  const pairs = fromPreferences(data, { onBadRow: skipBadRows ? 'skip' : 'error' }).pipe(
    toPairs(renderer, maxLength === undefined ? {} : { maxLength }),
    counted(),
    takeUntil(context.interrupted$),
  );
  const found = await waitFor(context, `reading ${basename(data)}`, firstValueFrom(pairs, { defaultValue: 0 }));
  if (found === 0) throw new CliError(`${data} holds no preferences`);
  note(context, `${basename(data)}: ${count(found, 'pair')}`);
  return found;
}
