import {
  bufferCount,
  concat,
  defer,
  finalize,
  forkJoin,
  ignoreElements,
  map,
  of,
  type OperatorFunction,
  type SchedulerLike,
  Subscription,
} from 'rxjs';
import { checkAtLeast, checkIntegers } from '../../support/checks.js';
import type { CustomLossFn, LossHandle } from '../../client/training/customLoss.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import type { AdamParams, OptimizerParams } from '../../wire/optimizer.js';
import type { LossFnConfig, LossFnType } from '../../wire/training.js';
import { concatMapAhead } from '../flow/concatMapAhead.js';
import { currentGate, Gate, underGate } from '../pressure/gate.js';
import { carryEvaluations } from './internal/carryEvaluations.js';
import { runMarks } from './internal/runMarks.js';
import { mergeMetrics, withCycles } from './internal/stepFacts.js';
import { submitSteps, type SubmittedStep } from './internal/submitSteps.js';
import { warnOfDivergence } from './internal/warnOfDivergence.js';
import type { Schedule } from './schedules.js';
import type { Step } from './step.js';
import type { Trainable } from './Trainable.js';
import { numberBatches, type TrainingBatch } from './trainingBatch.js';

type Scheduled<P> = Omit<P, 'learningRate'> & { readonly learningRate?: number | Schedule };

interface StepOptions {
  /** A loss of the service by name, one recorded by `defineLoss`, a function in closed form, or the handle of an uploaded loss. */
  readonly loss: LossFnType | CustomLossFn | LossHandle | TracedLoss;
  /** Numbers and texts the named loss takes. */
  readonly lossFnConfig?: LossFnConfig;
  /** How many further steps are submitted before the result of one has arrived: an integer ≥ 0. Default 1. */
  readonly ahead?: number;
  /** How many saves and evaluations may be unfinished before training waits for them: an integer ≥ 1. Default 8. */
  readonly pendingMarks?: number;
  /** Whether steps carry the tensors the loss gave for each datum. Default: no, they are large. */
  readonly keepOutputs?: boolean;
  /** Told once if the run seems to diverge; the step has it as `warning`, too. Default: a warning of the process. */
  readonly onWarning?: (warning: string) => void;
  /** For durations and expiry times. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

interface WithAdam {
  /** Adam's parameters; the learning rate may follow a schedule. Default: the service's, with a rate of 1e-4. */
  readonly adam?: Scheduled<AdamParams>;
  /** Not together with `adam`. */
  readonly optimizer?: never;
}

interface WithOptimizer {
  /** Another optimizer family, instead of `adam`; `type` is its name. */
  readonly optimizer: Scheduled<OptimizerParams>;
  /** Not together with `optimizer`. */
  readonly adam?: never;
}

interface Accumulating {
  /** How many batches' gradients are added up for one optimizer step: an integer ≥ 1. Default 1. */
  readonly accumulate?: number;
  /** Not together with `accumulate`. */
  readonly substeps?: never;
}

interface InSubsteps {
  /** In how many parts a batch is trained on, each with its own optimizer step: an integer ≥ 1. Default 1. */
  readonly substeps: number;
  /** Not together with `substeps`. */
  readonly accumulate?: never;
}

/** `adam` or `optimizer`, `accumulate` or `substeps`: one of each pair. */
export type TrainOptions = StepOptions & (WithAdam | WithOptimizer) & (Accumulating | InSubsteps);

/** How many finished steps may wait behind one whose save is not finished. */
const HELD_STEPS = 64;

/**
 * Trains on batches, in order, with the next ones already submitted while one runs.
 *
 * ```
 * source    (abcd|)                ahead 1, four frames per step on the service
 * a         ----s|
 * b         --------t|             submitted at once, behind a
 * c             --------u|         submitted when a is done, behind b
 * d                 --------v|
 * result    ----s---t---u---(v|)
 * ```
 * For every batch, forward-backward and the optimizer step are submitted together, then whatever `checkpointEvery`,
 * `evaluateEvery` and `markBatches` marked it with: a save takes its turn right after the optimizer step it belongs to,
 * and later steps do not wait for it. A step is emitted, in order, when its results and its checkpoint have arrived.
 *
 * An error of the trainer comes out in its turn, and nothing new is submitted; an error of the source comes out after
 * the steps before it. An empty batch, and one in which every weight is 0, is a `ValidationError`. Completes after the
 * last step and the last evaluation. Unsubscribing stops new submissions and the waiting; what was sent still runs and
 * is billed.
 *
 * Its {@link Gate} is closed while `ahead` further steps are submitted, while `pendingMarks` saves and evaluations are
 * unfinished, and while 64 finished steps wait for a save before them: files are read no faster than the service trains.
 * A loss that is no longer finite, or 30 times that of the first step, is told once: in the step's `warning`, and to `onWarning`.
 * Holds no data that is not submitted but for the batches it accumulates.
 */
export function train<T extends Trainable>(
  trainer: T,
  options: TrainOptions,
): OperatorFunction<TrainingBatch<NoInfer<T>>, Step> {
  const { ahead = 1, accumulate = 1, substeps = 1, pendingMarks = 8 } = options;
  checkAtLeast({ ahead }, 0);
  checkIntegers({ accumulate, substeps, pendingMarks }, 1);
  if (accumulate > 1 && substeps > 1) throw new RangeError('accumulate and substeps cannot both be above 1');
  if (options.adam !== undefined && options.optimizer !== undefined) {
    throw new RangeError('adam and optimizer cannot both be given');
  }
  return (source) =>
    defer(() => {
      const running = new Subscription();
      const submitted = defer(() => {
        const gate = new Gate(currentGate());
        const submit = submitSteps<T>(trainer, options, running, runMarks(pendingMarks, gate));
        return underGate(
          gate,
          numberBatches(source).pipe(bufferCount(accumulate), concatMapAhead(submit, { ahead, delayError: true })),
        );
      });
      return submitted.pipe(
        // A save is waited for here, where it keeps the steps in order but no later one from being submitted.
        concatMapAhead(withAdditions, { ahead: HELD_STEPS, delayError: true }),
        withCycles(),
        carryEvaluations(),
        concatMapAhead(
          ({ step, marks: { afterwards } }) =>
            concat(of(step), ...afterwards.map((act) => defer(() => act(step)).pipe(ignoreElements()))),
          { ahead: 0 },
        ),
        warnOfDivergence(options),
        finalize(() => running.unsubscribe()),
      );
    });
}

/** The step with what its marks add, once they have. */
function withAdditions(submitted: SubmittedStep) {
  const { step, marks } = submitted;
  if (marks.adds.length === 0) return of(submitted);
  return forkJoin(marks.adds).pipe(
    map((added): SubmittedStep => {
      const metrics = mergeMetrics([step.metrics, ...added.map((each) => each.metrics)]);
      return { ...submitted, step: Object.assign({}, step, ...added, { metrics }) as Step };
    }),
  );
}
