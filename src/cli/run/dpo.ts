import { identity, map, type Observable, Subject, take } from 'rxjs';
import type { SamplingClient, ServiceClient, TrainingClient } from '../../client/index.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import { plainMetrics } from '../../operators/training/shared/plainMetrics.js';
import type { Step } from '../../operators/training/step.js';
import type { SourceEvent } from '../../sources/index.js';
import type { ResumePoint } from '../../sources/resumeFrom.js';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';
import type { Given } from '../declare.js';
import { countRows, warnOfFewRows } from './countRows.js';
import type { RunTools, RunWork } from './followRun.js';
import { DPO, type Config } from './options.js';
import { runCommand, type OpenRun, type RunKind } from './runCommand.js';
import { modelOf } from '../modelOf.js';

type DpoConfig = Config<typeof DPO>;

const KIND: RunKind<typeof DPO> = { name: 'dpo', options: DPO, prepare };
const SHUFFLE_WINDOW = 4096;

/** Trains on a file of preferences, held to a reference that stays the same when the run is resumed. */
export default (context: Context, given: Given<typeof DPO>, data?: string): Promise<number> =>
  runCommand(context, KIND, given, data);

async function prepare(run: OpenRun<DpoConfig>): Promise<RunWork> {
  const { service, folder, trainer, resume } = run;
  const loss = await lossOf(run.config);
  const config = await withSettledReference(trainer, run.config, loss, resume);
  const reference = await openReference(service, config.reference);
  const pairs = await countPairs(run);
  warnOfFewRows(run.context, pairs, config.batchSize, 'pair', '--batch-size');
  const totalSteps = config.steps ?? Math.ceil((pairs * config.epochs) / config.batchSize);
  const source$ = new Subject<SourceEvent>();
  const { metricsLog } = await import('../../sinks/index.js');
  const steps = await stepsOf({ ...run, config }, { totalSteps, reference, loss, source$ });
  return {
    totalSteps,
    about:
      `, ${config.loss}, learning rate ${config.learningRate}` +
      (config.reference === undefined ? '' : `, reference ${config.reference}`),
    steps: (tools) => steps(tools).pipe(tools.counted(), metricsLog(folder, { config })),
    told: (last) => [
      ['Loss', last?.loss],
      ['Accuracy', last?.metrics['accuracy']],
      ['Margin', last?.metrics['margin']],
    ],
    source$,
  };
}

interface StepsOptions {
  readonly totalSteps: number;
  readonly reference: SamplingClient | undefined;
  readonly loss: TracedLoss;
  readonly source$: Subject<SourceEvent>;
}

async function stepsOf(
  { config, trainer, renderer, resume }: OpenRun<DpoConfig>,
  { totalSteps, reference, loss, source$ }: StepsOptions,
): Promise<(tools: RunTools) => Observable<Step>> {
  const operators = await import('../../operators/index.js');
  const { batch, checkpointEvery, continueFrom, linear, named, repeatEpochs, shuffle, toPairs } = operators;
  const { trainUntil, withReference } = operators;
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
    named('tokenize', toPairs(renderer, maxLength === undefined ? {} : { maxLength })),
    named('batch', batch({ size: config.batchSize })),
    map((pairs) => pairs.flat()),
  );
  return ({ stop$, guarded, warn }) =>
    batches.pipe(
      guarded(),
      continueFrom(resume),
      take(totalSteps - resume.batches),
      checkpointEvery({ steps: config.checkpointEvery, kind: 'both', atEnd: true }),
      reference === undefined ? identity : named('reference', withReference<TrainingClient>(reference)),
      // As trainPreferences does, but for a run that can be stopped.
      named(
        'train',
        trainUntil(stop$, trainer, {
          loss,
          adam: { learningRate: linear(config.learningRate, { steps: totalSteps }), eps: 1e-8 },
          ahead: config.ahead,
          checkpoint: { kind: 'both' },
          onWarning: warn,
        }),
      ),
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
  return service.createSamplingClient((await modelOf(reference)).source);
}

/** How many pairs the file has. Reads and tokenises what the run is going to read: a bad row is found before it costs a step. */
async function countPairs({ context, config, renderer }: OpenRun<DpoConfig>): Promise<number> {
  const { fromPreferences } = await import('../../sources/index.js');
  const { toPairs } = await import('../../operators/index.js');
  const { data, skipBadRows, maxLength, steps, batchSize } = config;
  const rows = fromPreferences(data, { onBadRow: skipBadRows ? 'skip' : 'error' });
  const pairs = rows.pipe(
    toPairs(renderer, maxLength === undefined ? {} : { maxLength }),
    take(steps === undefined ? Infinity : steps * batchSize + SHUFFLE_WINDOW),
  );
  return countRows(context, data, pairs, 'pair');
}
