import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  type SchedulerLike,
  Subscription,
  tap,
  toArray,
} from 'rxjs';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { checkpointEvery, type CheckpointEveryOptions } from '../../operators/checkpointEvery.js';
import { concatMapAhead } from '../../operators/concatMapAhead.js';
import { evaluateEvery, type EvaluateEveryOptions } from '../../operators/evaluateEvery.js';
import type { Step } from '../../operators/step.js';
import { lacks } from '../../operators/internal/lacks.js';
import { saveNow } from '../../operators/internal/saveNow.js';
import type { ForwardPasses, Saves, TakesSnapshots, Trainable } from '../../operators/Trainable.js';
import { train, type TrainOptions } from '../../operators/train.js';
import type { MarkedBatch } from '../../operators/trainingBatch.js';
import type { Datum } from '../../wire/datum.js';
import type { ModelInput } from '../../wire/modelInput.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { AdvantagesOptions, ScoredGroup } from './advantages.js';
import { admit } from '../pacing/admit.js';
import { BatchMaker, type MadeBatch, type PreparedGroup } from './BatchMaker.js';
import { penalized } from './klPenalty.js';
import { LoopTrainer } from './LoopTrainer.js';
import { lossOptions } from './lossOptions.js';
import { reporter } from '../pacing/reporter.js';
import { resumeState } from '../log/resumeState.js';
import { environmentMetrics, failureMetrics, offPolicyMetrics, policyMetrics } from './rlMetrics.js';
import { scored } from './scored.js';
import { forLoss, groupData, type MaskedDatum } from './trajectoryData.js';
import { wholeSequence } from './wholeSequence.js';
import { LivePolicy } from '../pacing/LivePolicy.js';
import type { RlListener } from '../pacing/rlEvent.js';
import type { RlLoss } from './rlLoss.js';
import type { RlResume, RlStep } from './rlStep.js';
import type { Group } from '../sampling/rollout.js';

/** What the KL penalty asks for log probabilities. A `SamplingClient` is one. */
export interface Reference {
  computeLogprobs(prompt: ModelInput): ObservableInput<Float32Array>;
}

export interface KlPenaltyOptions {
  /** The model to stay close to: a sampling client of the base model, mostly. */
  readonly reference: Reference;
  /** c in advantage += c · mask · (mean(d) − d), where d is the sampled minus the reference log probability: ≥ 0. */
  readonly coefficient: number;
  /** γ: with one above 0, each token gets the discounted sum of the penalties from it on. From 0 to 1, default 0. */
  readonly discount?: number;
  /** How many sequences of a group are scored at once: an integer ≥ 1. Default 64. */
  readonly concurrency?: number;
}

/** What `grpo` needs of a trainer: to train, and what its options ask for. A `TrainingClient` is one. */
export type RlTrainer<S = SamplingClient> = Trainable & Partial<TakesSnapshots<S> & Saves & ForwardPasses>;

export interface GrpoOptions<S = SamplingClient> {
  /** What `rollouts` samples from; new weights are published to it after every step. Default: groups come from elsewhere, and no weights are published. */
  readonly policy?: LivePolicy<S>;
  /** How many groups make an optimizer step: an integer ≥ 1. */
  readonly groupsPerBatch: number;
  /** Default `importance_sampling`. */
  readonly loss?: RlLoss;
  /** Adam's parameters; the learning rate may follow a schedule. Default: betas 0.9 and 0.95, eps 1e-8, a rate of 1e-4. */
  readonly adam?: NonNullable<TrainOptions['adam']>;
  /** Another optimizer family, in place of `adam`; `type` is its name. */
  readonly optimizer?: NonNullable<TrainOptions['optimizer']>;
  /** In how many parts a batch is trained on, each with its own optimizer step: an integer ≥ 1. Default 1. */
  readonly substeps?: number;
  /**
   * How many optimizer steps the weights may be ahead of those that sampled a group when it is trained on: an integer ≥ 0.
   * 0 (default) is synchronous; above, sampling and training overlap.
   */
  readonly maxStepsOffPolicy?: number;
  /**
   * In how many parts a batch is trained on, each as soon as its groups are there, with one optimizer step for all: an integer
   * ≥ 1. Default 1. Backward passes then run while later groups are still sampled.
   */
  readonly minibatches?: number;
  /** Whether groups that teach nothing are made up for by further tasks, so that batches are always full. Default: no, batches are smaller. */
  readonly refill?: boolean;
  /** For groups that come without advantages. */
  readonly advantages?: AdvantagesOptions;
  /** Penalty for leaving a reference model. Default: none. */
  readonly klPenalty?: KlPenaltyOptions;
  /** Trains on samples of another distribution than the model's own (a temperature, top-p, top-k) all the same. Default: an error. */
  readonly acceptAlteredSampling?: boolean;
  /** Checkpoints, right after their steps. Default: none. `atEnd` saves after the last step too. */
  readonly checkpoint?: CheckpointEveryOptions;
  /** Evaluations of the weights right after a step, while training goes on. Default: none. */
  readonly evaluate?: EvaluateEveryOptions<S>;
  /** Where an earlier run stopped; give the same to `rollouts`. */
  readonly resume?: RlResume | undefined;
  /** Told of every wait, of batches without a lesson, and of warnings. Default: warnings are printed on stderr. */
  readonly onEvent?: RlListener | undefined;
  /** For durations and expiry times. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** Root mean square of log ratios above 0.1: several times what rounding makes of them. */
const GAP = 0.005;
const ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-8 };

/**
 * Trains on groups as they come and publishes new weights after every step: closes the loop of reinforcement learning.
 *
 * ```
 * source    ab-----cd-----|         groupsPerBatch 2, maxStepsOffPolicy 0
 * step       ---s|                  forward-backward, optimizer step and snapshot in one burst
 * policy    0---1------2            the snapshot is published, and the next groups are admitted
 * result    ----s------t|
 * ```
 * At most (maxStepsOffPolicy + 1) × groupsPerBatch groups are admitted beyond what was trained on, so no group is trained on
 * by weights more than `maxStepsOffPolicy` steps ahead of those that sampled it. Batches are made in the order of admission;
 * nothing is sampled twice and nothing is thrown away. Groups that teach nothing count in the metrics and are not trained
 * on; where a whole batch teaches nothing there is no step, and the next tasks are taken. The last batch may be smaller.
 * Where batches at the end teach nothing, the last step comes again with the checkpoint that `atEnd` asks for.
 *
 * Errors of the source and of the trainer end the stream, after the steps before them. Completes after the last step and
 * the last evaluation. Unsubscribing stops sampling and training; what was sent to the trainer still runs. Holds the groups
 * that are not trained on yet; its `Gate` is closed while there are as many as may be.
 */
export function grpo<T = unknown, S = SamplingClient>(
  trainer: RlTrainer<S>,
  options: GrpoOptions<S>,
): OperatorFunction<Group<T> | ScoredGroup<T>, RlStep<T>> {
  const plan = planOf(options);
  const { policy, resume, maxStepsOffPolicy, groupsPerBatch } = plan;
  const { loss, lossFnConfig } = plan.loss;
  if (policy !== undefined && trainer.saveWeightsAndGetSamplingClient === undefined) {
    throw lacks('saveWeightsAndGetSamplingClient', 'a policy');
  }
  const submit = (data: readonly Datum[]) => {
    if (typeof loss === 'string')
      return trainer.forwardBackward(data, loss, lossFnConfig === undefined ? {} : { lossFnConfig });
    if (trainer.forwardBackwardCustom === undefined) throw lacks('forwardBackwardCustom', 'a custom loss');
    return trainer.forwardBackwardCustom(data, loss);
  };
  return (source) =>
    defer(() => {
      const live = policy ?? new LivePolicy<S>();
      const { pace } = live;
      const report = reporter(options.onEvent);
      const running = new Subscription();
      const loop = new LoopTrainer(trainer, submit, running, policy !== undefined);
      const made: MadeBatch<T>[] = [];
      let steps = resume?.steps ?? 0;
      let position = steps;
      let warned = false;
      let comparable = true;
      let received = 0;
      let training = 0;

      live.clear();
      pace.start((maxStepsOffPolicy + 1) * groupsPerBatch);
      const publish = (sampler: S | undefined, step: number) => {
        live.publish(sampler as S, step);
        if (policy !== undefined) report({ type: 'policy-published', step });
      };

      /** The trainer has nothing to do until more groups come. */
      const waitForRollouts = () => {
        if (training === 0 && received !== pace.total) {
          report({ type: 'rl-waiting', for: 'rollouts', admitted: received, done: pace.done });
        }
      };

      const prepare = (arrived: Group<T> | ScoredGroup<T>): Observable<PreparedGroup<T>> => {
        received++;
        const group = 'scoring' in arrived ? arrived : scored(arrived, options.advantages);
        if (!group.teaches) {
          report({ type: 'group-dropped', order: group.order, reason: group.dropped ?? 'constant' });
          return of({ group, data: [], splits: 0 });
        }
        checkSampling(group, plan);
        const { data, splits, splitReason } = groupData(group);
        if (splits > 0 && !warned) {
          warned = true;
          report({
            type: 'rl-warning',
            code: 'split-datums',
            message: `a trajectory needs more than one datum, which costs time: ${splitReason}`,
          });
        }
        const { klPenalty } = plan;
        if (klPenalty === undefined) return of({ group, data, splits });
        return referenceLogprobs(data, klPenalty).pipe(map((reference) => ({ group, data, splits, reference })));
      };

      const maker = new BatchMaker<T>({
        groupsPerBatch,
        minibatches: plan.minibatches,
        refill: plan.refill,
        release: (groups) => pace.release(groups),
        skipped: (groups) =>
          report({ type: 'batch-skipped', groups, reason: 'no group of the batch teaches anything' }),
        train: (part) => {
          const { data, kl } = trainedOn(part, plan);
          if (plan.substeps === 1) loop.pass(data.map((each) => forLoss(each, plan.keepsMask)));
          return kl === undefined ? { data } : { data, kl };
        },
      });

      const toBatch = (batch: MadeBatch<T> | undefined): Observable<MarkedBatch> => {
        if (batch === undefined) return EMPTY;
        made.push(batch);
        const last = batch.next === (resume?.next ?? 0) + (pace.total ?? -1);
        const step = ++steps;
        training++;
        loop.close(Math.min(plan.substeps, batch.data.length), (sampler) => {
          publish(sampler, step);
          pace.release(batch.unreleased);
          training--;
          waitForRollouts();
        });
        return of({
          data: batch.data.map((each) => forLoss(each, plan.keepsMask)),
          position: position++,
          marks: [],
          last,
        });
      };

      const toStep = (step: Step): RlStep<T> => {
        const batch = made.shift()!;
        const { outputs = [], ...rest } = step;
        const gap = offPolicyMetrics(batch.data, outputs);
        const onPolicy = batch.groups.every(({ trajectories }) =>
          trajectories.every((each) => each.step === step.index),
        );
        const v2 = gap['optim/kl_sample_train_v2'];
        if (comparable && onPolicy && plan.substeps === 1 && v2 !== undefined) {
          comparable = false;
          if (v2 > GAP) {
            report({
              type: 'rl-warning',
              code: 'sampler-trainer-gap',
              message:
                `the sampler and the trainer disagree about the same weights: optim/kl_sample_train_v2 is ${v2.toPrecision(3)} ` +
                `(v1 ${gap['optim/kl_sample_train_v1']!.toPrecision(3)}) on the first batch, where rounding alone gives less than ${GAP}`,
            });
          }
        }
        const state = step.checkpoint === undefined ? {} : { resume: resumeState(pace, step.index + 1, batch.next) };
        for (const order of pace.finished.keys()) if (order < batch.next) pace.finished.delete(order);
        const environment = environmentMetrics(batch.groups);
        return {
          ...rest,
          metrics: {
            ...step.metrics,
            ...environment,
            ...failureMetrics(batch.groups),
            ...policyMetrics(batch.groups, step.index),
            ...gap,
            ...(batch.kl.length === 0
              ? {}
              : { kl_policy_base: batch.kl.reduce((sum, kl) => sum + kl, 0) / batch.kl.length }),
            'optim/lr': step.learningRate,
            'datums/split_trajectories': batch.splits,
            'progress/batch': step.index,
          },
          reward: environment['env/all/reward/total']!,
          groups: batch.groups,
          ...state,
        };
      };

      const batches = concat(
        source.pipe(
          admit(live),
          concatMapAhead(prepare, { ahead: Infinity }),
          concatMap((group) => toBatch(maker.add(group))),
        ),
        defer(() => toBatch(maker.flush())),
      );
      const first =
        policy === undefined
          ? defer(() => {
              publish(undefined, steps);
              return EMPTY;
            })
          : defer(() => loop.saveWeightsAndGetSamplingClient()).pipe(
              tap((sampler) => {
                publish(sampler, steps);
                waitForRollouts();
              }),
            );
      let last: RlStep<T> | undefined;
      // Batches at the end may teach nothing: then the last step was not known to be the last when it was sent.
      const { checkpoint: saving, scheduler = asyncScheduler } = options;
      const atEnd = defer((): Observable<RlStep<T>> => {
        if (saving?.atEnd !== true || last === undefined || last.checkpoint !== undefined) return EMPTY;
        const step = last;
        return saveNow(loop, { steps, batches: position, scheduler }, saving).pipe(
          map((checkpoint) => ({ ...step, checkpoint, resume: resumeState(pace, steps, maker.next) })),
        );
      });
      const trained = batches.pipe(
        withMarks(options),
        // How far ahead it may run is a matter of admission.
        train(loop, { ...plan.train, loss, ahead: Infinity, keepOutputs: true }),
        map(toStep),
        tap((step) => (last = step)),
      );
      return merge(first.pipe(ignoreElements()), concat(trained, atEnd)).pipe(finalize(() => running.unsubscribe()));
    });
}

/** Saves and evaluations where they are asked for. */
function withMarks<S>({ checkpoint, evaluate }: GrpoOptions<S>) {
  return (source: Observable<MarkedBatch>): Observable<MarkedBatch<LoopTrainer<S>>> => {
    const saving = checkpoint === undefined ? source : checkpointEvery(checkpoint)<LoopTrainer<S>>(source);
    if (evaluate === undefined) return saving;
    const evaluations = 'validation' in evaluate ? evaluateEvery(evaluate) : evaluateEvery<S>(evaluate);
    return evaluations<LoopTrainer<S>>(saving);
  };
}

type Plan<S> = ReturnType<typeof planOf<S>>;

function planOf<S>(options: GrpoOptions<S>) {
  const { policy, groupsPerBatch, maxStepsOffPolicy = 0, minibatches = 1, substeps = 1, refill = false } = options;
  const { acceptAlteredSampling = false, klPenalty, resume, adam, optimizer, scheduler } = options;
  checkInteger('groupsPerBatch', groupsPerBatch, 1);
  checkInteger('maxStepsOffPolicy', maxStepsOffPolicy, 0);
  checkInteger('minibatches', minibatches, 1);
  checkInteger('substeps', substeps, 1);
  if (minibatches > groupsPerBatch) {
    throw new RangeError(`minibatches must be <= groupsPerBatch (${groupsPerBatch}), got ${minibatches}`);
  }
  if (adam !== undefined && optimizer !== undefined) throw new RangeError('adam and optimizer cannot both be given');
  if (minibatches > 1 && substeps > 1) throw new RangeError('minibatches and substeps cannot both be above 1');
  if (klPenalty !== undefined) {
    const { coefficient, discount = 0 } = klPenalty;
    if (!(coefficient >= 0)) throw new RangeError(`klPenalty.coefficient must be >= 0, got ${coefficient}`);
    if (!(discount >= 0 && discount <= 1))
      throw new RangeError(`klPenalty.discount must be from 0 to 1, got ${discount}`);
  }
  const loss = lossOptions(options.loss ?? 'importance_sampling');
  return {
    policy,
    groupsPerBatch,
    maxStepsOffPolicy,
    minibatches,
    substeps,
    refill,
    acceptAlteredSampling,
    klPenalty,
    resume,
    loss,
    keepsMask: loss.loss === 'gspo' || typeof loss.loss !== 'string',
    train: {
      ...(optimizer === undefined ? { adam: { ...ADAM, ...adam } } : { optimizer }),
      ...(scheduler === undefined ? {} : { scheduler }),
      substeps,
    },
  };
}

function checkInteger(name: string, value: number, least: number): void {
  if (!Number.isInteger(value) || value < least)
    throw new RangeError(`${name} must be an integer >= ${least}, got ${value}`);
}

/** Servers disagree on what log probabilities they return for altered distributions, so ratios would be wrong unseen. */
function checkSampling<S>({ trajectories, order }: Group, { acceptAlteredSampling, loss }: Plan<S>): void {
  if (acceptAlteredSampling || typeof loss.loss !== 'string') return;
  for (const { turns } of trajectories) {
    const altered = turns.find((turn) => turn.altered !== undefined)?.altered;
    if (altered === undefined) continue;
    throw new ValidationError(
      `group ${order} was sampled with ${altered}, and ${loss.loss} compares its log probabilities with the trainer's: ` +
        'sample with temperature 1, without top-p and top-k, or say acceptAlteredSampling',
    );
  }
}

/** What is trained on of a part of a batch, with the penalty where there is one. */
function trainedOn<S>(
  part: readonly PreparedGroup<unknown>[],
  { klPenalty }: Plan<S>,
): { readonly data: readonly MaskedDatum[]; readonly kl?: number } {
  const data = part.flatMap((prepared) => prepared.data);
  if (klPenalty === undefined) return { data };
  const reference = part.flatMap((prepared) => prepared.reference ?? []);
  return penalized(data, reference, klPenalty.coefficient, klPenalty.discount ?? 0);
}

function referenceLogprobs(
  data: readonly MaskedDatum[],
  { reference, concurrency = 64 }: KlPenaltyOptions,
): Observable<readonly Float32Array[]> {
  if (data.length === 0) return of([]);
  return from(data.entries()).pipe(
    mergeMap(
      ([index, { datum }]) =>
        from(reference.computeLogprobs(wholeSequence(datum))).pipe(map((values) => ({ index, values }))),
      concurrency,
    ),
    toArray(),
    map((found) => found.sort((a, b) => a.index - b.index).map(({ values }) => values)),
  );
}
