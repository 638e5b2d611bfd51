import { identity, merge, NEVER, type Observable, type Subject, take } from 'rxjs';
import type { TrainOn } from '../../../chat/renderers/core/Renderer.js';
import type { Schedule } from '../../../operators/training/schedules.js';
import type { Step } from '../../../operators/training/step.js';
import type { SourceEvent } from '../../../sources/index.js';
import type { Datum } from '../../../wire/datum.js';
import type { RunTools } from '../followRun.js';
import type { OpenRun } from '../runCommand.js';
import type { TrainConfig } from './train.js';

export interface TrainingStepsOptions {
  readonly learningRate: number;
  readonly totalSteps: number;
  /** Held-out examples; none without a file of them. */
  readonly validation: readonly Datum[];
  /** Told how the data is read. */
  readonly source$: Subject<SourceEvent>;
}

/** How many rows the shuffle holds. */
export const SHUFFLE_WINDOW = 4096;

/** The steps of a run: nothing is sent before subscribe. After `stop$` the steps that are submitted are finished, and the last one is saved. */
export async function trainingSteps(
  { config, trainer, renderer, resume }: OpenRun<TrainConfig>,
  { learningRate, totalSteps, validation, source$ }: TrainingStepsOptions,
): Promise<(tools: RunTools) => Observable<Step>> {
  const operators = await import('../../../operators/index.js');
  const { batch, checkpointEvery, continueFrom, evaluateEvery, named, plateau, repeatEpochs, shuffle } = operators;
  const { toDatums, trainUntil } = operators;
  const { fromConversations } = await import('../../../sources/index.js');
  const { seed, checkpointTtl, checkpointEvery: often, validateEvery = often } = config;
  const ttl = checkpointTtl === undefined ? {} : { ttlSeconds: checkpointTtl };
  const learning = await scheduleOf(config, learningRate, totalSteps);
  const onBadRow = config.skipBadRows ? 'skip' : 'error';
  const stale = plateau<Step>({ metric: 'validation_loss', patience: patienceOf(config) });
  const isStale = (steps: Observable<Step>) => (config.earlyStop === undefined ? NEVER : steps.pipe(stale));
  return ({ stop$, guarded, warn }) =>
    fromConversations(config.data, { onBadRow, onEvent: (event) => source$.next(event) }).pipe(
      named(
        'tokenize',
        repeatEpochs({
          ...(config.steps === undefined ? { epochs: config.epochs } : {}),
          // Each epoch on its own is told that it had nothing to train: an endless run of such would never end.
          each: (rows, epoch) =>
            rows.pipe(
              shuffle({ window: SHUFFLE_WINDOW, seed: seed + epoch }),
              toDatums(renderer, datumOptions(config)),
            ),
        }),
      ),
      named('batch', batch({ size: config.batchSize })),
      guarded(),
      continueFrom(resume),
      take(totalSteps - resume.batches),
      checkpointEvery({ steps: often, kind: 'both', atEnd: true, ...ttl }),
      validation.length === 0 ? identity : evaluateEvery({ steps: validateEvery, validation, atEnd: true }),
      named(
        'train',
        trainUntil((steps) => merge(stop$, isStale(steps)), trainer, {
          loss: 'cross_entropy',
          adam: { learningRate: learning },
          ahead: config.ahead,
          checkpoint: { kind: 'both', ...ttl },
          onWarning: warn,
        }),
      ),
    );
}

async function scheduleOf({ schedule, warmUp }: TrainConfig, rate: number, steps: number): Promise<Schedule> {
  const { constant, cosine, linear } = await import('../../../operators/training/schedules.js');
  if (schedule === 'constant') return constant(rate, { warmUp });
  return (schedule === 'linear' ? linear : cosine)(rate, { steps, warmUp: Math.min(warmUp, steps - 1) });
}

/** How many validations may be no better than the best. */
export const patienceOf = ({ earlyStop }: TrainConfig): number => (typeof earlyStop === 'number' ? earlyStop : 3);

/** How conversations become examples in this run. */
export const datumOptions = ({ trainOn, maxLength }: TrainConfig): { trainOn?: TrainOn; maxLength?: number } => ({
  ...(trainOn === undefined ? {} : { trainOn }),
  ...(maxLength === undefined ? {} : { maxLength }),
});
