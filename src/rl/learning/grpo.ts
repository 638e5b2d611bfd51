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
  NEVER,
  type Observable,
  of,
  type OperatorFunction,
  Subscription,
  take as takeFirst,
  takeUntil,
  tap,
} from 'rxjs';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { checkpointEvery } from '../../operators/training/checkpointEvery.js';
import { concatMapAhead } from '../../operators/flow/concatMapAhead.js';
import { evaluateEvery } from '../../operators/training/evaluateEvery.js';
import { missingMethod } from '../../operators/training/shared/missingMethod.js';
import { saveNow } from '../../operators/training/shared/saveNow.js';
import type { Step } from '../../operators/training/step.js';
import { train } from '../../operators/training/train.js';
import type { MarkedBatch } from '../../operators/training/trainingBatch.js';
import type { Datum } from '../../wire/datum.js';
import { takeGroupListener } from '../log/groupListener.js';
import { resumeState } from '../log/storedState.js';
import { admit } from '../pacing/admit.js';
import { Arrivals } from '../pacing/Pace.js';
import { LivePolicy } from '../pacing/LivePolicy.js';
import type { RlListener } from '../pacing/rlEvent.js';
import { reporter } from '../pacing/reporter.js';
import type { Group } from '../sampling/rollout.js';
import type { ScoredGroup } from './advantages.js';
import { BatchMaker, type MadeBatch, type PreparedGroup } from './BatchMaker.js';
import { FailedGroups } from './FailedGroups.js';
import type { GroupTally } from './GroupTally.js';
import type { GrpoOptions, RlTrainer } from './GrpoOptions.js';
import { LoopTrainer } from './LoopTrainer.js';
import { type Plan, planOf } from './planOf.js';
import { prepareGroup, trainedOn } from './prepareGroup.js';
import type { RlStep } from './rlStep.js';
import { scored } from './scored.js';
import { gapWarning, toRlStep } from './toRlStep.js';
import { forLoss } from './trajectoryData.js';

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
 * on; where a whole batch teaches nothing there is no step, and the next tasks are taken. Those after the last step are reported at the
 * end (`groups-untaught`). The last batch may be smaller, unless `stop$` ended the run.
 * Where batches at the end teach nothing, the last step comes again with the checkpoint that `atEnd` asks for.
 *
 * Errors of the source and of the trainer end the stream, after the steps before them. So does a whole batch of which every rollout
 * failed: a {@link RolloutsFailedError}. Completes after the last step and
 * the last evaluation. Unsubscribing stops sampling and training; what was sent to the trainer still runs. Holds the groups
 * that are not trained on yet, and of those that teach nothing eight batches at most, to be shown with the next step; its `Gate`
 * is closed while there are as many as may be.
 */
export function grpo<T = unknown, S = SamplingClient>(
  trainer: RlTrainer<S>,
  options: GrpoOptions<S>,
): OperatorFunction<Group<T> | ScoredGroup<T>, RlStep<T>> {
  const plan = planOf(options);
  const { policy, resume, maxStepsOffPolicy, groupsPerBatch } = plan;
  const { steps: most = Infinity } = options;
  const { loss } = plan.loss;
  if (policy !== undefined && trainer.saveWeightsAndGetSamplingClient === undefined) {
    throw missingMethod('saveWeightsAndGetSamplingClient', 'a policy');
  }
  return (source) =>
    defer(() => {
      const live = policy ?? new LivePolicy<S>();
      const { pace } = live;
      const report = reporter(options.onEvent);
      const heard = takeGroupListener();
      const running = new Subscription();
      const loop = new LoopTrainer(trainer, submitTo(trainer, plan), running, policy !== undefined);
      const made: MadeBatch<T>[] = [];
      let steps = resume?.steps ?? 0;
      let position = steps;
      let splitTold = false;
      const first = resume?.next ?? 0;
      const arrivals = new Arrivals(pace, first);
      let stopped = false;
      let last: RlStep<T> | undefined;
      const failed = new FailedGroups();

      live.clear();
      pace.start((maxStepsOffPolicy + 1) * groupsPerBatch);
      const publish = (sampler: S | undefined, step: number) => {
        const isNewest = live.publish(sampler as S, step);
        if (policy !== undefined && isNewest) report({ type: 'policy-published', step });
      };

      /** The trainer has nothing to do until more groups come. */
      const waitForRollouts = () => {
        if (pace.training === 0 && pace.arrived !== pace.total) {
          report({ type: 'rl-waiting', for: 'rollouts', admitted: pace.arrived, done: pace.done });
        }
      };

      const prepare = (arrived: Group<T> | ScoredGroup<T>): Observable<PreparedGroup<T>> => {
        if (policy === undefined) pace.arrived++;
        else arrivals.arrive(arrived.order);
        const group = 'scoring' in arrived ? arrived : scored(arrived, options.advantages);
        if (!group.teaches) report({ type: 'group-dropped', order: group.order, reason: group.dropped ?? 'constant' });
        return prepareGroup(group, plan, (reason) => {
          if (splitTold) return;
          splitTold = true;
          const message = `a trajectory needs more than one datum, which costs time: ${reason}`;
          report({ type: 'rl-warning', code: 'split-datums', message });
        });
      };

      const maker = new BatchMaker<T>({
        groupsPerBatch,
        minibatches: plan.minibatches,
        refill: plan.refill,
        release: (groups) => {
          // A checkpoint that is still to come may carry them; where there is none, nothing does.
          if (made.length === 0) pace.forgetBefore(maker.next);
          pace.release(groups);
        },
        skipped: (groups) =>
          report({ type: 'batch-skipped', groups, reason: 'no group of the batch teaches anything' }),
        train: (part) => {
          const { data, kl } = trainedOn(part, plan);
          if (plan.substeps === 1) loop.pass(data.map((each) => forLoss(each, plan.keepsMask)));
          return kl === undefined ? { data } : { data, kl };
        },
      });

      /** Adds a group to the batch in the making. */
      const take = (prepared: PreparedGroup<T>): MadeBatch<T> | undefined => {
        if (policy !== undefined) arrivals.take(prepared.group.order);
        heard?.(prepared.group, steps, maker.isFresh);
        failed.add(prepared.group);
        failed.check(groupsPerBatch);
        return maker.add(prepared);
      };

      const toBatch = (batch: MadeBatch<T> | undefined): Observable<MarkedBatch> => {
        if (batch === undefined) return EMPTY;
        made.push(batch);
        const step = ++steps;
        const isLast = step === most || batch.next === first + (pace.total ?? -1);
        pace.training++;
        loop.close(Math.min(plan.substeps, batch.data.length), (sampler) => {
          pace.training--;
          publish(sampler, step);
          pace.release(batch.unreleased);
          waitForRollouts();
        });
        const data = batch.data.map((each) => forLoss(each, plan.keepsMask));
        return of({ data, position: position++, marks: [], last: isLast });
      };

      const watchGap = plan.substeps === 1 ? gapWarning(report) : () => {};
      const toStep = (trained: Step): RlStep<T> => {
        const batch = made.shift()!;
        const step = toRlStep(trained, batch, watchGap);
        const state = step.checkpoint === undefined ? {} : { resume: resumeState(pace, step.index + 1, batch.next) };
        pace.forgetBefore(batch.next);
        return (last = { ...step, ...state });
      };

      const batches = concat(
        source.pipe(
          // With a policy, `rollouts` admits and says what it waits for.
          admit(live, policy === undefined ? report : undefined, 'training'),
          concatMapAhead(prepare, { ahead: Infinity }),
          concatMap((group) => toBatch(take(group))),
          takeUntil(from(options.stop$ ?? NEVER).pipe(tap(() => (stopped = true)))),
        ),
        defer(() => {
          // What is left of a batch is for the resumed run: a step of a few groups would not be one of this run.
          if (stopped) return EMPTY;
          failed.end();
          return toBatch(maker.flush());
        }),
      ).pipe(takeFirst(Math.max(0, most - steps)));
      const opening = defer(() => (policy === undefined ? of(undefined) : loop.saveWeightsAndGetSamplingClient())).pipe(
        tap((sampler) => {
          publish(sampler, steps);
          if (policy !== undefined) waitForRollouts();
        }),
      );
      const { checkpoint: saving, scheduler = asyncScheduler } = options;
      // Batches at the end may teach nothing: then the last step was not known to be the last when it was sent.
      const atEnd = defer((): Observable<RlStep<T>> => {
        const isCut = stopped || steps >= most;
        if (maker.rest !== undefined && !isCut) reportUntaught(maker.rest, steps, report);
        if (saving?.atEnd !== true || last === undefined || last.checkpoint !== undefined) return EMPTY;
        const step = last;
        return saveNow(loop, { steps, batches: position, scheduler }, saving).pipe(
          map((checkpoint) => ({
            ...step,
            checkpoint,
            resume: resumeState(pace, steps, isCut ? maker.closed : maker.next),
          })),
        );
      });
      const trained = batches.pipe(
        withMarks(options),
        // How far ahead it may run is a matter of admission.
        train(loop, { ...plan.train, loss, ahead: Infinity, keepOutputs: true }),
        map(toStep),
      );
      return merge(opening.pipe(ignoreElements()), concat(trained, atEnd)).pipe(finalize(() => running.unsubscribe()));
    });
}

function reportUntaught(tally: GroupTally, index: number, report: RlListener): void {
  const metrics = tally.metrics(index);
  const [answers, reward] = [metrics['env/all/total_episodes']!, metrics['env/all/reward/total']!];
  report({ type: 'groups-untaught', groups: tally.groups, answers, reward, metrics });
}

/** A pass of the loss that is asked for. */
function submitTo<S>(trainer: RlTrainer<S>, { loss: { loss, lossFnConfig } }: Plan<S>) {
  return (data: readonly Datum[]) => {
    if (typeof loss === 'string')
      return trainer.forwardBackward(data, loss, lossFnConfig === undefined ? {} : { lossFnConfig });
    if (trainer.forwardBackwardCustom === undefined) throw missingMethod('forwardBackwardCustom', 'a custom loss');
    return trainer.forwardBackwardCustom(data, loss);
  };
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
