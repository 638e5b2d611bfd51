import {
  AsyncSubject,
  asyncScheduler,
  forkJoin,
  map,
  type Observable,
  type ObservableInput,
  type Subscription,
  throwIfEmpty,
} from 'rxjs';
import { combineOutputs } from '../../../wire/combineOutputs.js';
import { isTracedLoss } from '../../../losses/TracedLoss.js';
import type { Datum } from '../../../wire/datum.js';
import { ValidationError } from '../../../wire/tinkerError.js';
import type { ForwardBackwardOutput } from '../../../wire/training.js';
import type { Step } from '../step.js';
import type { TrainOptions } from '../train.js';
import type { Trainable } from '../Trainable.js';
import type { MarkedBatch } from '../trainingBatch.js';
import { cancelling } from '../../../support/cancelling.js';
import type { StartedMarks, RunMarks } from './runMarks.js';
import { missingMethod } from '../shared/missingMethod.js';
import { mergeMetrics, type DataFacts, factsOf, lossSumOf, perUnit } from './stepFacts.js';

/** A step whose passes are done, with what its marks have started. */
export interface SubmittedStep {
  readonly step: Step;
  readonly marks: StartedMarks;
}

const DEFAULT_RATE = 1e-4;

/**
 * Puts all calls of one step in turn, synchronously and in order, and gives what comes of it.
 * `running` holds what waits for results, and ends the waiting when it is unsubscribed.
 */
export function submitSteps<T extends Trainable>(
  trainer: T,
  options: TrainOptions,
  running: Subscription,
  carry: RunMarks,
): (group: readonly MarkedBatch<T>[]) => Observable<SubmittedStep> {
  const { loss, lossFnConfig, adam, optimizer, accumulate = 1, substeps = 1, scheduler = asyncScheduler } = options;
  const { learningRate: rate = DEFAULT_RATE, ...rest } = optimizer ?? adam ?? {};
  const isOwnLoss = typeof loss !== 'string' && (typeof loss === 'function' || isTracedLoss(loss));
  let next: number | undefined;

  // A client's call is in flight once it is made, others (a fake, a promise) may be cold: subscribing at once treats all alike.
  const start = <R>(call: ObservableInput<R>): Observable<R> => {
    const result = new AsyncSubject<R>();
    running.add(cancelling(call).pipe(throwIfEmpty()).subscribe(result));
    return result;
  };

  const pass = (data: readonly Datum[]): Observable<ForwardBackwardOutput> => {
    if (typeof loss === 'string') {
      return start(trainer.forwardBackward(data, loss, lossFnConfig === undefined ? {} : { lossFnConfig }));
    }
    if (trainer.forwardBackwardCustom === undefined) throw missingMethod('forwardBackwardCustom', 'a custom loss');
    return start(trainer.forwardBackwardCustom(data, loss));
  };

  return (group) => {
    const startedMs = scheduler.now();
    for (const { data, position } of group) {
      if (data.length === 0) throw new ValidationError(`batch ${position} is empty: a step needs at least one datum`);
    }
    const data = group.flatMap((batch) => batch.data);
    const facts = factsOf(data);
    if (loss === 'cross_entropy' && !facts.carriesLoss) throw nothingToTrain(group, facts);
    const index = (next ??= Math.ceil(group[0]!.position / accumulate));
    next = index + 1;
    const batches = group.at(-1)!.position + 1;
    const learningRate = typeof rate === 'number' ? rate : rate(index);

    const passes: Observable<ForwardBackwardOutput>[] = [];
    const updates: Observable<{ readonly metrics?: Readonly<Record<string, number>> | undefined }>[] = [];
    // The passes before each update.
    const rounds = substeps === 1 ? [group.map((batch) => batch.data)] : parts(data, substeps).map((part) => [part]);
    for (const round of rounds) {
      for (const part of round) passes.push(pass(part));
      updates.push(start(trainer.optimStep({ ...rest, learningRate })));
    }
    const last = group.some((batch) => batch.last === true);
    const marks = carry(trainer, group, { index, steps: index + 1, batches, last, scheduler, start });

    return forkJoin([forkJoin(passes), forkJoin(updates)]).pipe(
      map(([outputs, updated]) => {
        const output = outputs.length === 1 ? outputs[0]! : combineOutputs(outputs);
        const lossSum = lossSumOf(output);
        const { datums, tokens } = facts;
        const metrics = mergeMetrics([...updated.map((done) => done.metrics), output.metrics]);
        const step: Step = {
          index,
          loss: isOwnLoss ? lossSum : perUnit(lossSum, facts),
          lossSum,
          metrics,
          datums,
          tokens,
          learningRate,
          batches,
          durationMs: scheduler.now() - startedMs,
          ...(options.keepOutputs === true ? { outputs: output.lossFnOutputs } : {}),
        };
        return { step, marks };
      }),
    );
  };
}

function nothingToTrain(group: readonly { readonly position: number }[], { datums }: DataFacts): ValidationError {
  const places = group.map(({ position }) => position).join(', ');
  return new ValidationError(
    `batch ${places} has nothing to train: every weight of its ${datums} datum${datums === 1 ? '' : 's'} is 0. ` +
      'Is there a turn of the assistant in the rows, and within the maximum length?',
  );
}

/** The data in `count` parts of nearly the same size, none of them empty. */
function parts(data: readonly Datum[], count: number): readonly (readonly Datum[])[] {
  const made = Math.min(count, data.length);
  return Array.from({ length: made }, (_, part) =>
    data.slice(Math.floor((part * data.length) / made), Math.floor(((part + 1) * data.length) / made)),
  );
}
