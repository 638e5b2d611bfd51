import { type Observable, type Subject, take, takeUntil } from 'rxjs';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { TrainingClient } from '../../client/TrainingClient.js';
import type { ResumePoint } from '../../sources/resumeFrom.js';
import type { SourceEvent } from '../../sources/index.js';
import type { Step } from '../../operators/step.js';
import type { Schedule } from '../../operators/schedules.js';
import type { TrainConfig } from './TrainConfig.js';

export interface TrainingStepsOptions {
  readonly config: TrainConfig;
  readonly learningRate: number;
  readonly totalSteps: number;
  readonly trainer: TrainingClient;
  readonly renderer: Renderer;
  readonly resume: ResumePoint;
  /** Ends the data: steps that are under way are finished, and the last one is saved. */
  readonly stop$: Subject<void>;
  /** Told how the data is read. */
  readonly onEvent: (event: SourceEvent) => void;
}

const SHUFFLE_WINDOW = 4096;

/** The steps of a run: nothing is sent before subscribe. */
export async function trainingSteps(options: TrainingStepsOptions): Promise<Observable<Step>> {
  const { config, learningRate, totalSteps, trainer, renderer, resume, stop$, onEvent } = options;
  const { batch, checkpointEvery, continueFrom, repeatEpochs, shuffle, toDatums, train } =
    await import('../../operators/index.js');
  const { fromConversations } = await import('../../sources/index.js');
  const { trainOn, maxLength, seed, checkpointTtl } = config;
  return fromConversations(config.data, { onBadRow: config.skipBadRows ? 'skip' : 'error', onEvent }).pipe(
    repeatEpochs({
      ...(config.steps === undefined ? { epochs: config.epochs } : {}),
      each: (rows, epoch) => rows.pipe(shuffle({ window: SHUFFLE_WINDOW, seed: seed + epoch })),
    }),
    toDatums(renderer, {
      ...(trainOn === undefined ? {} : { trainOn }),
      ...(maxLength === undefined ? {} : { maxLength }),
    }),
    batch({ size: config.batchSize }),
    continueFrom(resume),
    take(totalSteps - resume.batches),
    takeUntil(stop$),
    checkpointEvery({
      steps: config.checkpointEvery,
      kind: 'both',
      atEnd: true,
      ...(checkpointTtl === undefined ? {} : { ttlSeconds: checkpointTtl }),
    }),
    train(trainer, {
      loss: 'cross_entropy',
      adam: { learningRate: await scheduleOf(config, learningRate, totalSteps) },
      ahead: config.ahead,
    }),
  );
}

async function scheduleOf({ schedule, warmUp }: TrainConfig, rate: number, steps: number): Promise<Schedule> {
  const { constant, cosine, linear } = await import('../../operators/schedules.js');
  if (schedule === 'constant') return constant(rate, { warmUp });
  return (schedule === 'linear' ? linear : cosine)(rate, { steps, warmUp: Math.min(warmUp, steps - 1) });
}
