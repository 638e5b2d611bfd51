import { delay, EMPTY, from, lastValueFrom, map, mergeMap, NEVER, of, Subject, tap, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  type GroupAgent,
  type GroupContext,
  grpo,
  LivePolicy,
  type Policy,
  reinforce,
  type RlEvent,
  type RlStep,
  type Rollout,
  rollouts,
  type RolloutHook,
} from '../../src/rl/index.js';
import type { ModelInput } from '../../src/wire/modelInput.js';
import type { TensorData } from '../../src/wire/tensor.js';
import { alternating, fakeLoop, groupOf, type LoopSampler, PROMPT, turnOf } from './fakeLoop.js';
import { keepsContract } from './contract.js';
import { gated } from './gated.js';
import { instantTrainer } from './instantLoop.js';
import { marbles } from './marbles.js';

const tasks = (count: number) => from(Array.from({ length: count }, (_, index) => `task ${index}`));
const indexes = map((step: RlStep) => String(step.index));
const waits = (events: readonly RlEvent[]) =>
  events.flatMap((event) => (event.type === 'rl-waiting' ? [`${event.for} ${event.admitted} ${event.done}`] : []));

describe('grpo', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, order) => groupOf(order, [1, 0])),
        grpo(instantTrainer, { groupsPerBatch: 1 }),
      ),
    readsForThree: 5,
  });

  it(
    'samples from the weights of the step before, and submits a step with its snapshot in one burst',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 4, sampleMs: () => 2 });
      // Snapshot at 1, samples until 3, step until 7, samples until 9, step until 13.
      const expected = '       -------0-----(1|)';
      const result = tasks(4).pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2 }), indexes);
      m.expect(result).toBeObservable(expected);
      m.flush();
      const sampled = (first: number, held: number) =>
        Array.from({ length: 4 }, (_, index) => `sample ${first + index} from ${held}`);
      const burst = (held: number) => ['pass 4 importance_sampling', 'optim', `snapshot ${held}`];
      expect(log).toStrictEqual(['snapshot 0', ...sampled(0, 0), ...burst(1), ...sampled(4, 1), ...burst(2)]);
    }),
  );

  it(
    'stopped within a batch, finishes the step in training, and leaves the groups of the batch',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 4, sampleMs: () => 2 });
      // As above; the samples of the second batch begin at 7 and are cancelled at 8.
      const stop$ = m.cold('   --------x');
      const expected = '       -------0|';
      const options = { group: 2, groupsPerBatch: 2, stop$ };
      m.expect(tasks(4).pipe(reinforce(trainer, alternating, options), indexes)).toBeObservable(expected);
      m.flush();
      expect(log.filter((line) => line === 'optim')).toHaveLength(1);
    }),
  );

  it(
    'takes as many steps as `steps` says, whatever batches teach nothing, and samples no further',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 4, sampleMs: () => 2 });
      const steps: RlStep[] = [];
      const source = from([0, 1, 2, 3, 4, 5]).pipe(map((order) => groupOf(order, order % 2 === 0 ? [1, 0] : [1, 1])));
      const result = source.pipe(
        grpo(trainer, { groupsPerBatch: 1, steps: 2 }),
        tap((step) => steps.push(step)),
        indexes,
      );
      m.expect(result).toBeObservable('----0---(1|)');
      m.flush();
      expect(log.filter((line) => line === 'optim')).toHaveLength(2);
      expect(steps.map(({ index }) => index)).toStrictEqual([0, 1]);
    }),
  );

  it('refuses a number of steps that is none', () => {
    expect(() => grpo(instantTrainer, { groupsPerBatch: 1, steps: 0 })).toThrow('steps must be an integer >= 1, got 0');
  });

  it(
    'admits no group beyond what the last step has room for, and says that it waits for training',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 4, sampleMs: () => 2 });
      const events: RlEvent[] = [];
      const admitted: string[] = [];
      const onEvent = (event: RlEvent) => {
        events.push(event);
        if (event.type === 'group-admitted') admitted.push(`${event.order}@${m.scheduler.now()}`);
      };
      const { source, sent } = gated();
      const result = source.pipe(
        map((number) => `task ${number}`),
        reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, onEvent }),
        indexes,
      );
      m.expect(result, '       --------------!').toBeObservable('-------0-----1-');
      m.flush();
      expect(admitted).toStrictEqual(['0@1', '1@1', '2@7', '3@7', '4@13', '5@13']);
      // One task is read ahead.
      expect(sent()).toBe(7);
      expect(waits(events)).toStrictEqual([
        'policy 0 0',
        ...['training 2 0', 'rollouts 0 0'],
        ...['training 4 2', 'rollouts 2 2'],
        ...['training 6 4', 'rollouts 4 4'],
      ]);
      expect(log).toContain('snapshot 2');
    }),
  );

  it.each([1, 2])(
    'with %i steps off policy, overlaps sampling and training, and no trajectory is older',
    (maxStepsOffPolicy) => {
      marbles((m) => {
        const { trainer } = fakeLoop({ stepMs: 4, sampleMs: () => 4 });
        const ages: number[] = [];
        const times: number[] = [];
        const options = { group: 2, groupsPerBatch: 2, maxStepsOffPolicy };
        tasks(24)
          .pipe(reinforce(trainer, alternating, options))
          .subscribe(({ metrics }) => {
            ages.push(metrics['policy/age_max']!);
            times.push(m.scheduler.now());
          });
        m.flush();
        expect(ages).toHaveLength(12);
        expect(Math.max(...ages)).toBe(maxStepsOffPolicy);
        // Synchronously, a step would take 8.
        expect(times.at(-1)! - times[0]!).toBeLessThanOrEqual(11 * 5);
      })();
    },
  );

  it(
    'keeps the order of admission: a slow task is neither starved nor overtaken',
    marbles((m) => {
      // The first group takes as long as the others together.
      const { trainer } = fakeLoop({ stepMs: 2, sampleMs: (asked) => (asked < 2 ? 9 : 1) });
      const orders: number[][] = [];
      tasks(8)
        .pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, maxStepsOffPolicy: 1 }))
        .subscribe(({ groups }) => orders.push(groups.map(({ order }) => order)));
      m.flush();
      expect(orders).toStrictEqual([
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
      ]);
    }),
  );

  it(
    'begins backward passes while later groups of the batch are still sampled, with one optimizer step',
    marbles((m) => {
      // Groups 0 and 1 are there after 2, groups 2 and 3 after 8.
      const { trainer, log } = fakeLoop({ stepMs: 4, sampleMs: (asked) => (asked < 4 ? 1 : 7) });
      const at: string[] = [];
      const timed = {
        ...trainer,
        forwardBackward: (...args: Parameters<typeof trainer.forwardBackward>) => {
          at.push(`pass ${args[0].length}@${m.scheduler.now()}`);
          return trainer.forwardBackward(...args);
        },
      };
      const expected = '       ------------(0|)';
      const result = tasks(4).pipe(
        reinforce(timed, alternating, { group: 2, groupsPerBatch: 4, minibatches: 2 }),
        indexes,
      );
      m.expect(result).toBeObservable(expected);
      m.flush();
      expect(at).toStrictEqual(['pass 4@2', 'pass 4@8']);
      expect(log.filter((line) => !line.startsWith('sample'))).toStrictEqual([
        'snapshot 0',
        'pass 4 importance_sampling',
        'pass 4 importance_sampling',
        'optim',
        'snapshot 1',
      ]);
    }),
  );

  it(
    'never lets a pass of the next batch in before the optimizer step of this one',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 6, sampleMs: () => 1 });
      const options = { group: 2, groupsPerBatch: 2, minibatches: 2, maxStepsOffPolicy: 2 };
      tasks(12)
        .pipe(reinforce(trainer, alternating, options))
        .subscribe();
      m.flush();
      const order = log.filter((line) => line.startsWith('pass') || line === 'optim').map((line) => line.slice(0, 1));
      expect(order.join('')).toBe('ppo'.repeat(6));
    }),
  );

  it(
    'goes on when a rollout throws, never answers or has no number for a reward, and counts them',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) => {
        if (context.index === 0) throw new Error('bad luck');
        if (context.index === 1) return NEVER;
        if (context.index === 2) return of({ turns: [turnOf([1], [2])], reward: NaN });
        return alternating(task, policy, context);
      };
      const steps: RlStep[] = [];
      const events: RlEvent[] = [];
      const onEvent = (event: RlEvent) => events.push(event);
      const options = { group: 12, groupsPerBatch: 2, timeoutMs: 5, onEvent, scheduler: m.scheduler };
      tasks(4)
        .pipe(reinforce(trainer, agent, options))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(steps).toHaveLength(2);
      expect(steps[0]!.groups[0]!.failures.map(({ name, message }) => `${name}: ${message}`)).toStrictEqual([
        'Error: bad luck',
        'TimeoutError: the rollout took longer than 5 ms',
        "RangeError: a rollout's reward is NaN; it must be a finite number, true or false",
      ]);
      expect(steps[0]!.groups[0]!.trajectories.map(({ index }) => index)).toStrictEqual([3, 4, 5, 6, 7, 8, 9, 10, 11]);
      expect(steps[0]!.metrics).toMatchObject({
        'rollout_errors/total': 6,
        'rollout_errors/TimeoutError': 2,
        'env/all/total_episodes': 18,
      });
      expect(events.filter(({ type }) => type === 'rollout-failed')).toHaveLength(12);
    }),
  );

  it(
    'does not learn from a group that lost more than a quarter, and tells it from a constant one',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) =>
        task === 'task 0' && context.index < 2 ? throwError(() => new Error('no')) : alternating(task, policy, context);
      const steps: RlStep[] = [];
      tasks(2)
        .pipe(reinforce(trainer, agent, { group: 4, groupsPerBatch: 2 }))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(steps.map(({ groups }) => groups.map(({ dropped }) => dropped))).toStrictEqual([['too-few', undefined]]);
      expect(steps[0]!.metrics['groups/dropped_too_few']).toBe(1);
    }),
  );

  it(
    'tries a failed rollout again with another seed, as often as it may',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const seeds: number[] = [];
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) => {
        if (context.index === 0) seeds.push(context.seed);
        return context.index === 0 && seeds.length < 3
          ? throwError(() => new Error('no'))
          : alternating(task, policy, context);
      };
      const steps: RlStep[] = [];
      const attempts: string[] = [];
      const onEvent = (event: RlEvent) => {
        if (event.type !== 'rollout-started' && event.type !== 'rollout-failed') return;
        if (event.index === 0) attempts.push(`${event.type} ${event.attempt}`);
      };
      tasks(1)
        .pipe(reinforce(trainer, agent, { group: 2, groupsPerBatch: 1, onFailure: { retries: 2 }, onEvent }))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(attempts).toStrictEqual([
        ...['rollout-started 1', 'rollout-failed 1', 'rollout-started 2', 'rollout-failed 2', 'rollout-started 3'],
      ]);
      expect(new Set(seeds).size).toBe(3);
      expect(steps[0]!.groups[0]!.failures).toStrictEqual([]);
    }),
  );

  it(
    'ends at the first failure where asked to, without waiting for groups before it',
    marbles((m) => {
      const { trainer, cancelled } = fakeLoop({ sampleMs: () => 100 });
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) =>
        task === 'task 1'
          ? timer(3).pipe(mergeMap(() => throwError(() => new Error('no'))))
          : alternating(task, policy, context);
      const result = tasks(2).pipe(
        reinforce(trainer, agent, { group: 2, groupsPerBatch: 2, onFailure: 'fail' }),
        indexes,
      );
      m.expect(result).toBeObservable('----#', {}, new Error('no'));
      m.flush();
      expect(cancelled).toStrictEqual(['sample 0', 'sample 1']);
    }),
  );

  it(
    'takes the next tasks where a whole batch teaches nothing, says so, and counts its rewards with the next step',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 4, sampleMs: () => 1 });
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) =>
        ['task 0', 'task 1'].includes(task)
          ? policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 1, tags: ['easy'] })))
          : alternating(task, policy, context);
      const events: RlEvent[] = [];
      const steps: RlStep[] = [];
      const options = { group: 2, groupsPerBatch: 2, onEvent: (event: RlEvent) => events.push(event) };
      tasks(4)
        .pipe(reinforce(trainer, agent, options))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(events).toContainEqual({
        type: 'batch-skipped',
        groups: 2,
        reason: 'no group of the batch teaches anything',
      });
      expect(steps.map(({ index, groups }) => [index, groups.map(({ order }) => order)])).toStrictEqual([
        [0, [0, 1, 2, 3]],
      ]);
      // All groups count, and each has the tags it was given.
      expect(steps[0]!.reward).toBe(0.75);
      expect(steps[0]!.metrics).toMatchObject({
        'env/all/by_group/frac_mixed': 0.5,
        'env/all/by_group/frac_all_good': 0.5,
        'env/easy/reward/total': 1,
        'env/easy/total_episodes': 4,
        'groups/dropped_constant': 2,
      });
      expect(log.filter((line) => line === 'optim')).toHaveLength(1);
    }),
  );

  it(
    'completes where nothing ever teaches anything',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ sampleMs: () => 1 });
      const agent: RolloutHook<string, LoopSampler> = (_, policy) =>
        policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 0 })));
      m.expect(tasks(6).pipe(reinforce(trainer, agent, { group: 2, groupsPerBatch: 2 }))).toBeObservable('----|');
      m.flush();
      expect(log).not.toContain('optim');
    }),
  );

  it(
    'with refill, makes up for groups that teach nothing, so that batches are full',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) =>
        Number(task.slice(5)) % 3 === 0
          ? policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 1 })))
          : alternating(task, policy, context);
      const trainedOn: number[][] = [];
      tasks(9)
        .pipe(reinforce(trainer, agent, { group: 2, groupsPerBatch: 2, refill: true }))
        .subscribe(({ groups }) => trainedOn.push(groups.filter(({ teaches }) => teaches).map(({ order }) => order)));
      m.flush();
      expect(trainedOn).toStrictEqual([
        [1, 2],
        [4, 5],
        [7, 8],
      ]);
    }),
  );

  it(
    'trains on a last batch that is not full',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const sizes: number[] = [];
      tasks(5)
        .pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2 }))
        .subscribe(({ groups }) => sizes.push(groups.length));
      m.flush();
      expect(sizes).toStrictEqual([2, 2, 1]);
    }),
  );

  it(
    'cancels every sample in flight when unsubscribed, and aborts the signals',
    marbles((m) => {
      const { trainer, cancelled } = fakeLoop({ sampleMs: () => 50 });
      const signals: AbortSignal[] = [];
      const agent: RolloutHook<string, LoopSampler> = (task, policy, context) => {
        signals.push(context.signal);
        return alternating(task, policy, context);
      };
      const unsub = '          -----!';
      const expected = '       ------';
      m.expect(tasks(4).pipe(reinforce(trainer, agent, { group: 3, groupsPerBatch: 2 })), unsub).toBeObservable(
        expected,
      );
      m.flush();
      expect(cancelled).toHaveLength(6);
      expect(signals.map(({ aborted }) => aborted)).toStrictEqual(Array.from({ length: 6 }, () => true));
    }),
  );

  it(
    'samples nothing and says why while a policy never comes',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ firstMs: Infinity });
      const events: RlEvent[] = [];
      const { source, sent } = gated();
      const onEvent = (event: RlEvent) => events.push(event);
      const never = { ...trainer, saveWeightsAndGetSamplingClient: () => NEVER };
      const result = source.pipe(
        map((number) => `task ${number}`),
        reinforce(never, alternating, { group: 2, groupsPerBatch: 2, onEvent }),
      );
      m.expect(result, '    ---------!').toBeObservable('----------');
      m.flush();
      expect(log).toStrictEqual([]);
      expect(sent()).toBe(1);
      expect(waits(events)).toStrictEqual(['policy 0 0']);
    }),
  );

  it(
    'passes an error of a snapshot, of a pass and of the tasks, after the steps before it',
    marbles((m) => {
      const failing = {
        ...fakeLoop().trainer,
        saveWeightsAndGetSamplingClient: () => throwError(() => new Error('no weights')),
      };
      const options = { group: 2, groupsPerBatch: 1 };
      m.expect(tasks(2).pipe(reinforce(failing, alternating, options))).toBeObservable(
        '#',
        {},
        new Error('no weights'),
      );
      const pass = fakeLoop({ failsPass: (number) => number === 1 });
      const second = tasks(2).pipe(reinforce(pass.trainer, alternating, options), indexes);
      m.expect(second).toBeObservable('------0----#', undefined, new Error('pass 1 failed'));
      const source = m.cold('  a-#', { a: 'task' });
      m.expect(source.pipe(reinforce(fakeLoop().trainer, alternating, options), indexes)).toBeObservable('--#');
    }),
  );

  it(
    'takes groups from anywhere, without publishing weights, no more at once than it may',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 4 });
      const { source, sent } = gated(6);
      const read: number[] = [];
      const result = source.pipe(
        map((order) => groupOf(order, [1, 0])),
        grpo(trainer, { groupsPerBatch: 2, maxStepsOffPolicy: 0 }),
        tap(() => read.push(sent())),
        indexes,
      );
      m.expect(result).toBeObservable('----0---1---(2|)');
      m.flush();
      expect(log.some((line) => line.startsWith('snapshot'))).toBe(false);
      expect(read).toStrictEqual([5, 6, 6]);
    }),
  );

  it(
    'splits a batch into substeps, with one snapshot after the last',
    marbles((m) => {
      const { trainer, log } = fakeLoop();
      tasks(2)
        .pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, substeps: 2 }))
        .subscribe();
      m.flush();
      expect(log.filter((line) => !line.startsWith('sample'))).toStrictEqual([
        'snapshot 0',
        ...['pass 2 importance_sampling', 'optim', 'pass 2 importance_sampling', 'optim', 'snapshot 2'],
      ]);
    }),
  );

  it(
    'counts batches, not substeps, as the steps that weights may be ahead',
    marbles((m) => {
      const { trainer } = fakeLoop({ stepMs: 4, sampleMs: () => 4 });
      const ages: number[] = [];
      const published: number[] = [];
      const onEvent = (event: RlEvent) => {
        if (event.type === 'policy-published') published.push(event.step);
      };
      tasks(12)
        .pipe(
          reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, substeps: 2, maxStepsOffPolicy: 1, onEvent }),
        )
        .subscribe(({ metrics }) => ages.push(metrics['policy/age_max']!));
      m.flush();
      expect(published).toStrictEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(ages).toStrictEqual([0, 1, 1, 1, 1, 1]);
    }),
  );

  it(
    'refuses samples of an altered distribution for losses that compare probabilities, unless they are accepted',
    marbles((m) => {
      const hot: RolloutHook<string, LoopSampler> = (_, policy, { index }) =>
        policy.turn(PROMPT, { temperature: 0.7, topP: 0.9 }).pipe(map((turn) => ({ turns: [turn], reward: index })));
      const options = { group: 2, groupsPerBatch: 1 };
      const message =
        "group 0 was sampled with temperature 0.7, top-p 0.9, and importance_sampling compares its log probabilities with the trainer's: " +
        'sample with temperature 1, without top-p and top-k, or say acceptAlteredSampling';
      const result = tasks(1).pipe(reinforce(fakeLoop().trainer, hot, options));
      m.expect(result).toBeObservable('--#', {}, Object.assign(new Error(message), { name: 'ValidationError' }));
      const accepted = tasks(1).pipe(
        reinforce(fakeLoop().trainer, hot, { ...options, acceptAlteredSampling: true }),
        indexes,
      );
      m.expect(accepted).toBeObservable('------(0|)');
    }),
  );

  it(
    'warns, with the figure, where sampler and trainer disagree on the first batch, and once',
    marbles((m) => {
      const events: RlEvent[] = [];
      const onEvent = (event: RlEvent) => events.push(event);
      const gap = fakeLoop({ trained: (sampled) => sampled - 0.2 });
      const steps: RlStep[] = [];
      tasks(2)
        .pipe(reinforce(gap.trainer, alternating, { group: 2, groupsPerBatch: 1, onEvent }))
        .subscribe((step) => steps.push(step));
      m.flush();
      const warnings = events.flatMap((event) => (event.type === 'rl-warning' ? [event] : []));
      expect(warnings.map(({ code }) => code)).toStrictEqual(['sampler-trainer-gap']);
      expect(warnings[0]!.message).toContain('optim/kl_sample_train_v2 is 0.0200 (v1 0.200)');
      expect(steps[0]!.metrics['optim/kl_sample_train_v1']).toBeCloseTo(0.2, 6);
      expect(steps[0]!.metrics['optim/kl_sample_train_v2']).toBeCloseTo(0.02, 6);
      expect(steps[0]!.metrics['optim/ratio_p50']).toBeCloseTo(Math.exp(-0.2), 5);
    }),
  );

  it(
    'saves and evaluates after the last step too, where that is asked for',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const steps: RlStep[] = [];
      const evaluate = { steps: 2, atEnd: true, evaluate: (sampler: LoopSampler) => of({ held: sampler.steps }) };
      tasks(3)
        .pipe(
          reinforce(trainer, alternating, {
            group: 2,
            groupsPerBatch: 1,
            checkpoint: { steps: 2, atEnd: true },
            evaluate,
          }),
        )
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(steps.map(({ checkpoint }) => checkpoint?.name)).toStrictEqual([undefined, 'step-000002', 'step-000003']);
      expect(steps.flatMap(({ evaluations = [] }) => evaluations.map(({ metrics }) => metrics))).toStrictEqual([
        { held: 2 },
        { held: 3 },
      ]);
      expect(steps.map(({ resume }) => resume?.next)).toStrictEqual([undefined, 2, 3]);
    }),
  );

  it(
    'starts afresh for every subscriber',
    marbles((m) => {
      const once = () =>
        tasks(2).pipe(reinforce(fakeLoop().trainer, alternating, { group: 2, groupsPerBatch: 1 }), indexes);
      const { trainer } = fakeLoop();
      const result = tasks(2).pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 1 }), indexes);
      m.scheduler.expectObservable(once()).toEqual(once());
      m.expect(result).toBeObservable('------0----(1|)');
    }),
  );

  it(
    'completes with no tasks, and stays silent with silent ones',
    marbles((m) => {
      const options = { group: 2, groupsPerBatch: 1 };
      m.expect(EMPTY.pipe(reinforce(fakeLoop().trainer, alternating, options))).toBeObservable('-|');
      m.expect(NEVER.pipe(reinforce(fakeLoop().trainer, alternating, options)), '---!').toBeObservable('----');
    }),
  );

  it(
    'shares a policy between parts that stand alone',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const policy = new LivePolicy<LoopSampler>();
      const versions: number[] = [];
      policy.versions$.subscribe(({ step }) => versions.push(step));
      const result = tasks(2).pipe(
        rollouts<string, LoopSampler>(alternating, { policy, group: 2 }),
        delay(1),
        grpo<string, LoopSampler>(trainer, { policy, groupsPerBatch: 1 }),
        indexes,
      );
      m.expect(result).toBeObservable('-------0-----(1|)');
      m.flush();
      expect(versions).toStrictEqual([0, 1, 2]);
      expect(policy.current?.step).toBe(2);
    }),
  );

  it('does not mind a listener that throws', async () => {
    const source = new Subject<string>();
    const { trainer } = fakeLoop({ stepMs: 0, firstMs: 0, sampleMs: () => 0 });
    const onEvent = () => {
      throw new Error('listener');
    };
    const result = lastValueFrom(
      source.pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 1, onEvent })),
    );
    source.next('a');
    source.complete();
    expect((await result).index).toBe(0);
  });

  describe('what the public cookbook gets wrong', () => {
    it(
      'a rollout that throws does not hang a streamed batch',
      marbles((m) => {
        const { trainer } = fakeLoop();
        const agent: RolloutHook<string, LoopSampler> = (task, policy, context) =>
          task === 'task 1' ? throwError(() => new Error('no')) : alternating(task, policy, context);
        const trained: number[][] = [];
        tasks(8)
          .pipe(reinforce(trainer, agent, { group: 4, groupsPerBatch: 4, minibatches: 4, maxStepsOffPolicy: 1 }))
          .subscribe(({ groups }) => trained.push(groups.filter(({ teaches }) => teaches).map(({ order }) => order)));
        m.flush();
        expect(trained).toStrictEqual([
          [0, 2, 3],
          [4, 5, 6, 7],
        ]);
      }),
    );

    it(
      'an asynchronous run trains all of its 20 batches',
      marbles((m) => {
        const { trainer, log } = fakeLoop({ sampleMs: (asked) => 1 + (asked % 7) });
        const steps: RlStep[] = [];
        tasks(40)
          .pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, maxStepsOffPolicy: 3 }))
          .subscribe((step) => steps.push(step));
        m.flush();
        expect(steps).toHaveLength(20);
        expect(log.filter((line) => line === 'optim')).toHaveLength(20);
        const orders = steps.flatMap(({ groups }) => groups.map(({ order }) => order));
        expect(orders).toStrictEqual(Array.from({ length: 40 }, (_, order) => order));
        expect(log.filter((line) => line.startsWith('sample'))).toHaveLength(80);
      }),
    );

    it(
      'a streamed batch in which nothing teaches anything does not crash',
      marbles((m) => {
        const { trainer, log } = fakeLoop();
        const agent: RolloutHook<string, LoopSampler> = (task, policy, context) =>
          Number(task.slice(5)) < 4
            ? policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 0 })))
            : alternating(task, policy, context);
        const steps: RlStep[] = [];
        tasks(8)
          .pipe(reinforce(trainer, agent, { group: 2, groupsPerBatch: 4, minibatches: 2 }))
          .subscribe((step) => steps.push(step));
        m.flush();
        expect(steps.map(({ index, groups }) => [index, groups.length])).toStrictEqual([[0, 8]]);
        expect(log.filter((line) => line.startsWith('pass'))).toHaveLength(2);
      }),
    );
  });

  it(
    'cancels the one request of a group when unsubscribed',
    marbles((m) => {
      const { trainer, cancelled, log } = fakeLoop({ sampleMs: () => 50 });
      const agent: GroupAgent<string, LoopSampler> = Object.assign(alternating.bind(undefined), {
        group: (_: string, policy: Policy<LoopSampler>, { size }: GroupContext) => {
          const turns = policy.sample({ prompt: PROMPT, numSamples: size });
          return Array.from({ length: size }, (__, index) =>
            turns.pipe(map((all): Rollout => ({ turns: [all[index]!], reward: index % 2 }))),
          );
        },
      });
      m.expect(tasks(2).pipe(reinforce(trainer, agent, { group: 4, groupsPerBatch: 2 })), '---!').toBeObservable(
        '----',
      );
      m.flush();
      expect(log).toStrictEqual(['snapshot 0', 'sample 0 from 0 x4', 'sample 1 from 0 x4']);
      expect(cancelled).toStrictEqual(['sample 0', 'sample 1']);
    }),
  );

  it(
    'penalizes leaving a reference, which is asked while other groups are sampled, and tells how far it is',
    marbles((m) => {
      const { trainer } = fakeLoop();
      let asked = 0;
      const sent: number[] = [];
      const reference = {
        computeLogprobs: (prompt: ModelInput) => {
          asked++;
          // Of five positions, the last two are sampled.
          return timer(2).pipe(map(() => new Float32Array(prompt.length).fill(-2)));
        },
      };
      const watching = {
        ...trainer,
        forwardBackward: (...args: Parameters<typeof trainer.forwardBackward>) => {
          for (const { lossFnInputs } of args[0])
            sent.push(...((lossFnInputs['advantages'] as TensorData).data as Float32Array));
          return trainer.forwardBackward(...args);
        },
      };
      const steps: RlStep[] = [];
      const agent: RolloutHook<string, LoopSampler> = (_, __, { index }) =>
        of({ turns: [turnOf([1, 2, 3], [4, 5])], reward: index });
      tasks(1)
        .pipe(reinforce(watching, agent, { group: 2, groupsPerBatch: 1, klPenalty: { reference, coefficient: 1 } }))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(asked).toBe(2);
      // All logprobs are −1, the reference's −2: the distance is 1 everywhere, so there is nothing to even out.
      expect(steps[0]!.metrics['kl_policy_base']).toBe(1);
      expect(sent).toStrictEqual([0, 0, -0.5, -0.5, 0, 0, 0.5, 0.5]);
    }),
  );

  it.each([false, true])(
    'holds few groups while none teaches anything, and counts all of them (refill %s)',
    (refill) => {
      marbles((m) => {
        const { trainer } = fakeLoop({ stepMs: 1, sampleMs: () => 1 });
        // Only the last task pays differently.
        const agent: RolloutHook<string, LoopSampler> = (task, policy, { index }) =>
          policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: task === 'task 99' ? index : 1 })));
        const policy = new LivePolicy<LoopSampler>();
        let held = 0;
        const steps: RlStep[] = [];
        tasks(100)
          .pipe(
            rollouts<string, LoopSampler>(agent, { policy, group: 2 }),
            tap(() => (held = Math.max(held, policy.pace.finished.size))),
            grpo<string, LoopSampler>(trainer, { policy, groupsPerBatch: 2, refill }),
          )
          .subscribe((step) => steps.push(step));
        m.flush();
        expect(steps).toHaveLength(1);
        expect(steps[0]!.metrics).toMatchObject({ 'env/all/total_episodes': 200, 'groups/dropped_constant': 99 });
        expect(steps[0]!.reward).toBeCloseTo(199 / 200);
        expect(steps[0]!.groups.map(({ order }) => order)).toStrictEqual(
          Array.from({ length: 17 }, (_, place) => 83 + place),
        );
        expect(held).toBeLessThanOrEqual(5);
      })();
    },
  );

  it(
    'says that groups from elsewhere wait for training',
    marbles((m) => {
      const { trainer } = fakeLoop({ stepMs: 4 });
      const events: RlEvent[] = [];
      from([0, 1, 2, 3])
        .pipe(
          map((order) => groupOf(order, [1, 0])),
          grpo(trainer, { groupsPerBatch: 1, onEvent: (event) => events.push(event) }),
        )
        .subscribe();
      m.flush();
      expect(waits(events).filter((wait) => wait.startsWith('training'))).toStrictEqual([
        'training 1 0',
        'training 2 1',
        'training 3 2',
      ]);
    }),
  );

  it.each([
    [{ groupsPerBatch: 0 }, 'groupsPerBatch must be an integer >= 1, got 0'],
    [{ maxStepsOffPolicy: -1 }, 'maxStepsOffPolicy must be an integer >= 0, got -1'],
    [{ minibatches: 3 }, 'minibatches must be <= groupsPerBatch (2), got 3'],
    [{ minibatches: 2, substeps: 2 }, 'minibatches and substeps cannot both be above 1'],
    [{ loss: { name: 'ppo', clip: { low: 1.2 } } }, 'clip.low must be from 0 to 1, got 1.2'],
    [{ loss: { name: 'dro', beta: -1 } }, 'beta must be >= 0, got -1'],
    [{ loss: { name: 'dro', beta: Infinity } }, 'beta must be >= 0, got Infinity'],
    [
      { klPenalty: { coefficient: Infinity, reference: { computeLogprobs: () => EMPTY } } },
      'klPenalty.coefficient must be a number >= 0, got Infinity',
    ],
    [{ group: 0 }, 'group must be an integer >= 1, got 0'],
    [{ smallestGroup: 5 }, 'smallestGroup must be <= group (2), got 5'],
    [{ timeoutMs: 0 }, 'timeoutMs must be > 0, got 0'],
  ] as const)('refuses %j', (options, message) => {
    const { trainer } = fakeLoop();
    const run = () => reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, ...options });
    expect(run).toThrow(new RangeError(message));
  });

  it(
    'saves at the end also where the last batches taught nothing: the last step comes again, with its checkpoint',
    marbles((m) => {
      const { trainer, log } = fakeLoop({ stepMs: 1, sampleMs: () => 1 });
      // Only the first task pays differently.
      const agent: RolloutHook<string, LoopSampler> = (task, policy, { index }) =>
        policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: task === 'task 0' ? index : 1 })));
      const options = { group: 2, groupsPerBatch: 1, checkpoint: { steps: 10, atEnd: true } };
      const seen: unknown[] = [];
      tasks(3)
        .pipe(reinforce(trainer, agent, options))
        .subscribe(({ index, checkpoint, resume }) => seen.push([index, checkpoint?.steps, resume?.next]));
      m.flush();
      expect(seen).toStrictEqual([
        [0, undefined, undefined],
        [0, 1, 3],
      ]);
      expect(log.filter((line) => line.startsWith('save'))).toHaveLength(1);
    }),
  );
});
