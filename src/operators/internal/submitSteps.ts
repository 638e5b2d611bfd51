import {
  AsyncSubject,
  asyncScheduler,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  forkJoin,
  from,
  last,
  map,
  type Observable,
  type ObservableInput,
  type Subscription,
  throwIfEmpty,
} from 'rxjs';
import { combineOutputs } from '../../client/training/combineOutputs.js';
import type { Datum } from '../../wire/datum.js';
import type { ForwardBackwardOutput } from '../../wire/training.js';
import type { Evaluation, Step } from '../step.js';
import type { Trainable, TrainOptions } from '../train.js';
import type { Checkpoint, CheckpointMark, EvaluationMark, EvaluationPoint, MarkedBatch } from '../trainingBatch.js';
import { cancelling } from './cancelling.js';
import { factsOf, lossSumOf, perUnit } from './stepFacts.js';
import { underGate } from './underGate.js';

/** A step whose passes are done, with what was put in turn right after it. */
export interface SubmittedStep {
  readonly step: Step;
  readonly checkpoint: Observable<Checkpoint> | undefined;
  /** What is to be done once the step is out with its checkpoint. */
  readonly afterwards: CheckpointMark['afterwards'];
  readonly evaluations: readonly Observable<Evaluation>[];
}

const DEFAULT_RATE = 1e-4;

/**
 * Puts all calls of one step in turn, synchronously and in order, and gives what comes of it.
 * `running` holds what waits for results, and ends the waiting when it is unsubscribed.
 */
export function submitSteps<S>(
  trainer: Trainable<S>,
  options: TrainOptions,
  running: Subscription,
): (group: readonly MarkedBatch<S>[]) => Observable<SubmittedStep> {
  const { loss, lossFnConfig, adam, optimizer, accumulate = 1, substeps = 1, scheduler = asyncScheduler } = options;
  const { learningRate: rate = DEFAULT_RATE, ...rest } = optimizer ?? adam ?? {};
  let next: number | undefined;

  // A client's call is under way once it is made, others (a fake, a promise) may be cold: subscribing at once treats all alike.
  const start = <T>(call: ObservableInput<T>): Observable<T> => {
    const result = new AsyncSubject<T>();
    running.add(cancelling(call).pipe(throwIfEmpty()).subscribe(result));
    return result;
  };

  const pass = (data: readonly Datum[]): Observable<ForwardBackwardOutput> => {
    if (typeof loss === 'string') {
      return start(trainer.forwardBackward(data, loss, lossFnConfig === undefined ? {} : { lossFnConfig }));
    }
    if (trainer.forwardBackwardCustom === undefined) throw lacks('forwardBackwardCustom', 'a loss of your own');
    return start(trainer.forwardBackwardCustom(data, loss));
  };

  const save = (mark: CheckpointMark, steps: number, batches: number): Observable<Checkpoint> => {
    const { kind, kept, ttlSeconds } = mark;
    const name = mark.name(steps);
    const ttl = ttlSeconds === undefined ? {} : { ttlSeconds };
    const paths: Record<string, Observable<string>> = {};
    if (kind !== 'sampler') {
      if (trainer.saveState === undefined) throw lacks('saveState', 'checkpointEvery');
      paths['statePath'] = start(trainer.saveState(name, ttl)).pipe(map(({ path }) => path));
    }
    if (kind !== 'state') {
      if (trainer.saveWeightsForSampler === undefined) throw lacks('saveWeightsForSampler', 'checkpointEvery');
      paths['samplerPath'] = start(trainer.saveWeightsForSampler(name, ttl)).pipe(map(({ path }) => path));
    }
    return forkJoin(paths).pipe(
      map((found): Checkpoint => {
        const expires = ttlSeconds === undefined ? {} : { expiresAtMs: scheduler.now() + ttlSeconds * 1000 };
        return { name, steps, batches, ...found, kept, ...expires };
      }),
    );
  };

  const evaluate = (mark: EvaluationMark<S>, at: EvaluationPoint): Observable<Evaluation> => {
    if (trainer.saveWeightsAndGetSamplingClient === undefined) {
      throw lacks('saveWeightsAndGetSamplingClient', 'evaluateEvery');
    }
    const snapshot = start(trainer.saveWeightsAndGetSamplingClient());
    return snapshot.pipe(
      concatMap((sampler) => {
        const startedMs = scheduler.now();
        // What an evaluation reads has nothing to do with how full training is.
        return underGate(
          undefined,
          defer(() => mark.evaluate(sampler, at)),
        ).pipe(
          defaultIfEmpty({}),
          last(),
          map((metrics) => ({ index: at.index, metrics, durationMs: scheduler.now() - startedMs })),
        );
      }),
    );
  };

  return (group) => {
    const startedMs = scheduler.now();
    const data = group.flatMap((batch) => batch.data);
    const facts = factsOf(data);
    const index = (next ??= Math.ceil(group[0]!.position / accumulate));
    next = index + 1;
    const batches = group.at(-1)!.position + 1;
    const learningRate = typeof rate === 'number' ? rate : rate(index);

    const passes: Observable<ForwardBackwardOutput>[] = [];
    const updates: Observable<{ readonly metrics?: Readonly<Record<string, number>> | undefined }>[] = [];
    const update = () => updates.push(start(trainer.optimStep({ ...rest, learningRate })));
    if (substeps === 1) {
      for (const batch of group) passes.push(pass(batch.data));
      update();
    } else {
      for (const part of parts(data, substeps)) {
        passes.push(pass(part));
        update();
      }
    }
    const marks = group.flatMap((batch) => batch.marks);
    const mark = joinMarks(marks.filter((each) => each.type === 'checkpoint'));
    const checkpoint = mark && save(mark, index + 1, batches);
    // Of the batches of one step, each may carry the same evaluation: the weights are the same.
    const evaluators = new Map(marks.flatMap((each) => (each.type === 'evaluation' ? [[each.evaluate, each]] : [])));
    const evaluations = Array.from(evaluators.values(), (each) => evaluate(each, { index, steps: index + 1 }));

    return forkJoin([forkJoin(passes), forkJoin(updates)]).pipe(
      map(([outputs, updated]) => {
        const output = combineOutputs(outputs);
        const lossSum = lossSumOf(output);
        const { datums, tokens } = facts;
        const step: Step = {
          index,
          loss: typeof loss === 'function' ? lossSum : perUnit(lossSum, facts),
          lossSum,
          metrics: Object.assign({}, ...updated.map(({ metrics }) => metrics), output.metrics) as Record<
            string,
            number
          >,
          datums,
          tokens,
          learningRate,
          batches,
          durationMs: scheduler.now() - startedMs,
          ...(options.keepOutputs === true ? { outputs: output.lossFnOutputs } : {}),
        };
        return { step, checkpoint, afterwards: mark?.afterwards, evaluations };
      }),
    );
  };
}

/** Several checkpoints wanted after one step are one, which holds what any of them wants, as long as any wants it. */
function joinMarks(marks: readonly CheckpointMark[]): CheckpointMark | undefined {
  const [first, ...others] = marks;
  if (first === undefined || others.length === 0) return first;
  const kinds = new Set(marks.map(({ kind }) => kind));
  const kept = marks.some((mark) => mark.kept);
  const lives = marks.map(({ ttlSeconds = Infinity }) => ttlSeconds);
  const ttlSeconds = Math.max(...lives);
  const actions = [...new Set(marks.flatMap(({ afterwards }) => afterwards ?? []))];
  return {
    ...first,
    kind: kinds.size === 1 ? first.kind : 'both',
    kept,
    ...(ttlSeconds === Infinity ? { ttlSeconds: undefined } : { ttlSeconds }),
    afterwards: kept ? undefined : (checkpoint) => concat(...actions.map((action) => from(action(checkpoint)))),
  };
}

/** The data in `count` parts of nearly the same size, none of them empty. */
function parts(data: readonly Datum[], count: number): readonly (readonly Datum[])[] {
  const made = Math.min(count, data.length);
  return Array.from({ length: made }, (_, part) =>
    data.slice(Math.floor((part * data.length) / made), Math.floor(((part + 1) * data.length) / made)),
  );
}

function lacks(method: string, feature: string): TypeError {
  return new TypeError(`the trainer has no ${method}, which ${feature} needs`);
}
