import { from, map, NEVER, Observable, of, take, throwError, timer } from 'rxjs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { AuthenticationError } from '../../src/client/errors.js';
import { decodeState, encodeState } from '../../src/rl/log/storedState.js';
import {
  type Group,
  LivePolicy,
  reinforce,
  type RlEvent,
  type RlResume,
  type RlStep,
  rollouts,
  type RolloutHook,
} from '../../src/rl/index.js';
import { alternating, fakeLoop, groupOf, type LoopSampler, PROMPT } from './fakeLoop.js';
import { firehose, keepsContract } from './contract.js';
import { instantAgent, instantSampler } from './instantLoop.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const orders = map((group: Group) => String(group.order));
const tasks = (count: number) => from(Array.from({ length: count }, (_, index) => `task ${index}`));

describe('rollouts', () => {
  keepsContract({
    operator: () => rollouts(instantAgent, { policy: instantSampler, group: 2, concurrency: 2 }),
    readsForThree: 4,
  });

  it(
    'works without a trainer: groups come out as they finish',
    marbles((m) => {
      // Two samples a group: 5 for the first, 1 for the others.
      const { sampler } = fakeLoop({ sampleMs: (asked) => (asked < 2 ? 5 : 1) });
      const source = m.cold('  abc|');
      const subs = '           ^--!';
      const expected = '       --12-(0|)';
      m.expect(source.pipe(rollouts(alternating, { policy: sampler(0), group: 2 }), orders)).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'uses the newest of a stream of samplers, waits for the first, and says from which a trajectory came',
    marbles((m) => {
      const { sampler, log } = fakeLoop({ sampleMs: () => 1 });
      const samplers = m.cold('--a---b', { a: sampler(0), b: sampler(1) });
      const source = m.cold('  a-----a|');
      const expected = '       ---x---(y|)';
      const steps = map(({ trajectories }: Group) => trajectories.map(({ step }) => step));
      const result = source.pipe(rollouts(alternating, { policy: samplers, group: 1 }), steps);
      m.expect(result).toBeObservable(expected, { x: [0], y: [1] });
      m.flush();
      expect(log).toStrictEqual(['sample 0 from 0', 'sample 1 from 1']);
    }),
  );

  it(
    'fails where the stream of samplers fails or ends without one, and where every rollout would fail alike',
    marbles((m) => {
      const options = { group: 1 };
      m.expect(NEVER.pipe(rollouts(alternating, { policy: m.cold<LoopSampler>('-#'), ...options }))).toBeObservable(
        '-#',
      );
      m.expect(NEVER.pipe(rollouts(alternating, { policy: m.cold<LoopSampler>('-|'), ...options }))).toBeObservable(
        '-#',
        undefined,
        new Error('the stream of samplers ended without a sampler'),
      );
      const refused = new AuthenticationError('wrong key', { status: 401, headers: {}, body: '' });
      const policy = { sample: () => throwError(() => refused) };
      const agent: RolloutHook<string, typeof policy> = (_, own) =>
        own.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 0 })));
      const named = Object.assign(new Error('wrong key'), { name: 'AuthenticationError' });
      m.expect(of('a').pipe(rollouts(agent, { policy, group: 1 }))).toBeObservable('#', undefined, named);
    }),
  );

  it(
    'has no more rollouts in flight than it may, and lets a gated source wait',
    marbles((m) => {
      const { sampler, running } = fakeLoop({ sampleMs: () => 4 });
      const { source, sent } = gated(6);
      const seen: number[] = [];
      const result = source.pipe(
        map((task) => `task ${task}`),
        rollouts(alternating, { policy: sampler(0), group: 2, concurrency: 5 }),
        orders,
      );
      timer(2).subscribe(() => seen.push(running(), sent()));
      m.expect(result).toBeObservable('----(01)(23)(45|)');
      m.flush();
      expect(seen).toStrictEqual([4, 2]);
    }),
  );

  it(
    'takes a promise for a rollout, and cancels what it samples when unsubscribed',
    marbles((m) => {
      const { sampler, cancelled } = fakeLoop({ sampleMs: () => 9 });
      const agent: RolloutHook<string, LoopSampler> = async (_, policy) => {
        const turn = await policy.turn(PROMPT);
        return { turns: [turn], reward: 1 };
      };
      m.expect(of('a').pipe(rollouts(agent, { policy: sampler(0), group: 2 })), '--!').toBeObservable('---');
      m.flush();
      expect(cancelled).toStrictEqual(['sample 0', 'sample 1']);
    }),
  );

  it(
    'gives the same seeds to the same tasks, whatever happened before, and others to other rollouts',
    marbles((m) => {
      const seeds = (count: number, resume?: RlResume) => {
        const found: Record<string, number> = {};
        const agent: RolloutHook<string, LoopSampler> = (task, policy, context) => {
          found[`${task}.${context.index}`] = context.seed;
          return alternating(task, policy, context);
        };
        const { trainer } = fakeLoop();
        tasks(count)
          .pipe(reinforce(trainer, agent, { group: 2, groupsPerBatch: 2, seed: 5, resume }))
          .subscribe();
        m.flush();
        return found;
      };
      const all = seeds(4);
      expect(new Set(Object.values(all)).size).toBe(8);
      const { 'task 2.0': third, 'task 3.1': last } = all;
      expect(seeds(4, { steps: 1, next: 2, finished: [] })).toStrictEqual({
        'task 2.0': third,
        'task 2.1': all['task 2.1'],
        'task 3.0': all['task 3.0'],
        'task 3.1': last,
      });
    }),
  );

  it(
    'resumed, skips what was trained on, samples no finished group again, and counts steps on',
    marbles((m) => {
      const { trainer, log } = fakeLoop();
      const resume: RlResume = { steps: 3, next: 2, finished: [groupOf(3, [1, 0])] };
      const steps: RlStep<string>[] = [];
      tasks(5)
        .pipe(reinforce(trainer, alternating, { group: 2, groupsPerBatch: 2, resume }))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(steps.map(({ index, groups }) => [index, groups.map(({ task }) => task)])).toStrictEqual([
        [3, ['task 2', 'task 3']],
        [4, ['task 4']],
      ]);
      expect(log.filter((line) => line.startsWith('sample'))).toHaveLength(4);
    }),
  );

  it(
    'an asynchronous checkpoint carries finished groups that are not trained on, also behind a slow one',
    marbles((m) => {
      // The third group is slow; the fourth is finished long before it.
      const { trainer } = fakeLoop({ stepMs: 4, sampleMs: (asked) => (asked === 4 || asked === 5 ? 30 : 1) });
      const states: RlResume[] = [];
      tasks(8)
        .pipe(
          reinforce(trainer, alternating, {
            group: 2,
            groupsPerBatch: 2,
            maxStepsOffPolicy: 1,
            checkpoint: { steps: 1 },
          }),
        )
        .subscribe(({ resume }) => states.push(resume!));
      m.flush();
      expect(states[0]).toMatchObject({ steps: 1, next: 2, finished: [{ order: 3 }] });
      expect(states.at(-1)).toStrictEqual({ steps: 4, next: 8, finished: [] });
      const stored = { resume: states[0]!, rolloutsBytes: 7 };
      expect(decodeState(encodeState(stored), 'state.json')).toStrictEqual(stored);
      expect(() => decodeState('{"version":9}', 'state.json')).toThrow(
        'state.json:1: it has version 9, this release reads 1',
      );
    }),
  );

  it(
    'keeps no group where weights are published by hand and nobody trains',
    marbles((m) => {
      const { sampler } = fakeLoop();
      const policy = new LivePolicy<LoopSampler>();
      policy.publish(sampler(0), 0);
      const seen: number[] = [];
      tasks(20)
        .pipe(rollouts<string, LoopSampler>(alternating, { policy, group: 2 }))
        .subscribe(({ order }) => seen.push(order));
      m.flush();
      expect(seen).toHaveLength(20);
      expect(policy.pace.finished.size).toBe(0);
    }),
  );

  it(
    'says that it waits for rollouts in flight, with a sampler and with a live policy',
    marbles((m) => {
      const { sampler } = fakeLoop({ sampleMs: () => 2 });
      const live = new LivePolicy<LoopSampler>();
      live.publish(sampler(0), 0);
      for (const policy of [sampler(0), live]) {
        const events: RlEvent[] = [];
        tasks(3)
          .pipe(
            rollouts<string, LoopSampler>(alternating, {
              policy,
              group: 2,
              concurrency: 4,
              onEvent: (event) => events.push(event),
            }),
          )
          .subscribe();
        m.flush();
        expect(events.filter(({ type }) => type === 'rl-waiting')[0]).toStrictEqual({
          ...{ type: 'rl-waiting', for: 'concurrency', admitted: 2, done: 0 },
        });
      }
    }),
  );

  it('stops a synchronous source when its subscriber has enough', () => {
    const { source, read } = firehose();
    const policy = { sample: () => NEVER };
    const agent: RolloutHook<string, typeof policy> = (_task, _policy, { seed }) =>
      of({
        turns: [
          {
            prompt: PROMPT,
            sequence: { stopReason: 'stop' as const, tokens: new Int32Array(), logprobs: new Float32Array() },
          },
        ],
        reward: seed,
      });
    const seen: number[] = [];
    source.pipe(rollouts(agent, { policy, group: 1 }), take(3)).subscribe(({ order }) => seen.push(order));
    expect(seen).toStrictEqual([0, 1, 2]);
    expect(read()).toBeLessThanOrEqual(4);
  });

  it('holds a bounded amount for a rollout in flight, and nothing after', () => {
    setFlagsFromString('--expose_gc');
    const gc = runInNewContext('gc') as () => void;
    const heap = () => {
      gc();
      return process.memoryUsage().heapUsed;
    };
    const policy = { sample: () => new Observable<never>(() => {}) };
    const agent: RolloutHook<string, typeof policy> = (_, own) =>
      own.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 0 })));
    const start = () =>
      tasks(100)
        .pipe(rollouts(agent, { policy, group: 16, concurrency: 1600, timeoutMs: Infinity }))
        .subscribe();
    start().unsubscribe();
    const before = heap();
    const running = start();
    const each = (heap() - before) / 1600;
    running.unsubscribe();
    expect(each).toBeLessThan(16_384);
    expect((heap() - before) / 1600).toBeLessThan(500);
  });

  it(
    'admits a bounded number of groups of many tasks through a slow trainer',
    marbles((m) => {
      const { trainer } = fakeLoop({ stepMs: 50, sampleMs: () => 1 });
      const { source, sent } = gated(120);
      let trained = 0;
      let most = 0;
      source
        .pipe(
          map((task) => `task ${task}`),
          reinforce(trainer, alternating, { group: 4, groupsPerBatch: 8, maxStepsOffPolicy: 1 }),
        )
        .subscribe(({ groups }) => {
          trained += groups.length;
          most = Math.max(most, sent() - trained);
        });
      m.flush();
      expect(trained).toBe(120);
      expect(most).toBeLessThanOrEqual(2 * 8 + 2);
    }),
  );
});
