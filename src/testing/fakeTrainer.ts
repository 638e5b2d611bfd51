import { asyncScheduler, map, Observable, type ObservableInput, type SchedulerLike, timer } from 'rxjs';
import type { ForwardPasses, Saves, TakesSnapshots, Trainable } from '../operators/training/Trainable.js';
import type { Datum } from '../wire/datum.js';
import { ModelInput } from '../wire/modelInput.js';
import { TensorData } from '../wire/tensor.js';
import type { ForwardBackwardOutput } from '../wire/training.js';

/** What {@link fakeTrainer} gives as a sampler. */
export interface FakeSampler {
  /** How many optimizer steps its weights hold. */
  readonly steps: number;
}

/** Options of `fakeTrainer`. */
export interface FakeTrainerOptions {
  /** How long a pass and its optimizer step take, one after the other, as a queue would. Default 4. */
  readonly passMs?: number;
  /** How long a save takes once what was submitted before it is done. Default 3. */
  readonly saveMs?: number;
  /** The metrics of a pass, counted from 0. Default: a loss that falls from 10. */
  readonly metrics?: (pass: number) => Readonly<Record<string, number>>;
  /** Which passes, counted from 0, fail. Default: none. */
  readonly fails?: (pass: number) => boolean;
  /** What the loss gives for each datum. Default: one logprob of −1. */
  readonly outputs?: (data: readonly Datum[]) => ForwardBackwardOutput['lossFnOutputs'];
  /** The clock of the test. Default `asyncScheduler`, which inside `TestScheduler.run` is the virtual one. */
  readonly scheduler?: SchedulerLike;
}

/** What {@link fakeTrainer} makes. */
export interface FakeTrainer {
  /** For `train`, `checkpointEvery`, `evaluateEvery` and marks. */
  readonly trainer: Required<Trainable> & Required<Saves> & TakesSnapshots<FakeSampler> & ForwardPasses;
  /** Its calls, in order: `forwardBackward 1 cross_entropy`, `optimStep {"learningRate":0.0001}`, `saveState step-000020`. A test may add notes. */
  readonly log: string[];
  /** Those of its calls that were cancelled. */
  readonly cancelled: readonly string[];
}

/** A datum for tests: `tokens` tokens 0, 1, 2 …, each of weight `weight`; without, it has no weights. */
export function datum(tokens: number, weight?: number): Datum {
  const ids = Array.from({ length: tokens }, (_, place) => place);
  return {
    modelInput: ModelInput.fromInts(ids),
    lossFnInputs: {
      target_tokens: ids,
      ...(weight === undefined ? {} : { weights: new Float32Array(tokens).fill(weight) }),
    },
  };
}

/**
 * A trainer for tests of pipelines that need no client: it works through calls in the order they were made, each pass
 * taking `passMs`. Like the real client's, its calls are in flight once they are made.
 *
 * ```ts
 * const { trainer, log } = fakeTrainer({ passMs: 4 });
 * m.cold('(ab|)', { a: [datum(2, 1)], b: [datum(2, 1)] }).pipe(train(trainer, { loss: 'cross_entropy', ahead: 0 }));
 * // ----0---(1|), and log has forwardBackward, optimStep, forwardBackward, optimStep
 * ```
 * @returns the trainer, a `log` of its calls in order, and those of them that were `cancelled`
 */
export function fakeTrainer({
  passMs = 4,
  saveMs = 3,
  metrics,
  fails,
  outputs,
  scheduler = asyncScheduler,
}: FakeTrainerOptions = {}): FakeTrainer {
  const log: string[] = [];
  const cancelled: string[] = [];
  let passes = 0;
  let steps = 0;
  let outstanding = 0;

  /** A call that is in flight at once and can be cancelled. */
  const call = <T>(name: string, work: Observable<T>): Observable<T> & { cancel(): void } => {
    log.push(name);
    return Object.assign(new Observable<T>((subscriber) => work.subscribe(subscriber)), {
      cancel: () => void cancelled.push(name),
    });
  };
  const pass = (name: string, data: readonly Datum[]) => {
    const number = passes++;
    outstanding++;
    const output = (): ForwardBackwardOutput => ({
      lossFnOutputType: 'fake',
      lossFnOutputs: outputs?.(data) ?? data.map(() => ({ logprobs: TensorData.from([-1], 'float32') })),
      metrics: metrics?.(number) ?? { 'loss:sum': 10 - number },
    });
    return call(
      name,
      timer(outstanding * passMs, scheduler).pipe(
        map(() => {
          outstanding--;
          if (fails?.(number) === true) throw new Error(`pass ${number} failed`);
          return output();
        }),
      ),
    );
  };

  const trainer: FakeTrainer['trainer'] = {
    forwardBackward: (data, loss, { lossFnConfig } = {}) =>
      pass(
        `forwardBackward ${data.length} ${loss}${lossFnConfig === undefined ? '' : JSON.stringify(lossFnConfig)}`,
        data,
      ),
    forwardBackwardCustom: (data, loss) => pass(`forwardBackwardCustom ${data.length} ${loss.name}`, data),
    // Takes its turn in the queue like any pass, and teaches nothing.
    forward: (data, loss) => {
      const metrics = { 'loss:sum': 100 - steps };
      return call(
        `forward ${data.length} ${loss}`,
        timer(outstanding * passMs, scheduler).pipe(
          map(() => ({ lossFnOutputType: 'fake', lossFnOutputs: [], metrics })),
        ),
      );
    },
    optimStep: (params) => {
      steps++;
      return call(`optimStep ${JSON.stringify(params)}`, timer(outstanding * passMs, scheduler).pipe(map(() => ({}))));
    },
    saveState: (name, options) => {
      const held = steps;
      return call(
        `saveState ${name}${'ttlSeconds' in options ? ` ${options.ttlSeconds}` : ''}`,
        timer(outstanding * passMs + saveMs, scheduler).pipe(
          map(() => ({ path: `tinker://run/weights/${name}@${held}` })),
        ),
      );
    },
    saveWeightsForSampler: (name) => {
      const held = steps;
      return call(
        `saveWeightsForSampler ${name}`,
        timer(outstanding * passMs + saveMs, scheduler).pipe(
          map(() => ({ path: `tinker://run/sampler_weights/${name}@${held}` })),
        ),
      );
    },
    saveWeightsAndGetSamplingClient: (): ObservableInput<FakeSampler> => {
      const held = steps;
      return call('snapshot', timer(outstanding * passMs, scheduler).pipe(map(() => ({ steps: held }))));
    },
  };
  return { trainer, log, cancelled };
}
