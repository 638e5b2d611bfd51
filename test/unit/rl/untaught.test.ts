import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concat, EMPTY, defer, filter, from, lastValueFrom, map, mergeMap, of, Subject, take, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  advantages,
  type Group,
  grpo,
  LivePolicy,
  reinforce,
  type ReinforceOptions,
  type RlEvent,
  rlLog,
  type RolloutHook,
  rollouts,
} from '../../../src/rl/index.js';
import { fakeLoop, type LoopSampler, PROMPT } from '../../marbles/fakeLoop.js';
import { instantAgent, instantTrainer, type InstantSampler } from '../../marbles/instantLoop.js';
import { marbles } from '../../marbles/marbles.js';

const tasks = (count: number) => from(Array.from({ length: count }, (_, index) => `task ${index}`));
const agentOf =
  (reward: (task: number, index: number) => number): RolloutHook<string, InstantSampler> =>
  (task, policy, { index }) =>
    policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: reward(Number(task.slice(5)), index) })));

describe('answers that teach nothing', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'untaught-'))));
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });
  const lines = () =>
    readFileSync(join(folder, 'rollouts.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const learn = (
    reward: (task: number, index: number) => number,
    options: Partial<ReinforceOptions<string, InstantSampler>> = {},
  ) =>
    lastValueFrom(
      tasks(40).pipe(
        reinforce<string, InstantSampler>(instantTrainer, agentOf(reward), { group: 4, groupsPerBatch: 4, ...options }),
        rlLog(folder),
        toArray(),
      ),
    );

  it('are in the log where nothing trains, and a program is told', async () => {
    const printed: string[] = [];
    vi.spyOn(console, 'error').mockImplementation((line: string) => void printed.push(line));
    expect(await learn(() => 0)).toStrictEqual([]);
    expect(lines()).toHaveLength(160);
    expect(lines().at(-1)).toMatchObject({
      order: 39,
      traj_idx: 3,
      total_reward: 0,
      dropped: 'constant',
      iteration: 0,
    });
    expect(existsSync(join(folder, 'metrics.jsonl'))).toBe(false);
    expect(printed).toStrictEqual([
      'tinker-rx warning: no step was made of a batch of 4 groups: no group of the batch teaches anything. Further ones are counted at the end',
      'tinker-rx warning: the last 40 groups taught nothing and are in no step: 160 answers, mean reward 0',
    ]);
  });

  it.each([false, true])('are all in some metric, those after the last step too (refill %s)', async (refill) => {
    const events: RlEvent[] = [];
    const onEvent = (event: RlEvent) => events.push(event);
    const steps = await learn((task, index) => (task < 8 ? index : 1), { refill, onEvent });
    const counted = steps.map(({ metrics }) => metrics['env/all/total_episodes']!);
    expect(counted).toStrictEqual([16, 16]);
    const [rest, ...others] = events.filter((event) => event.type === 'groups-untaught');
    expect(others).toStrictEqual([]);
    expect(rest).toMatchObject({ groups: 32, answers: 128, reward: 1 });
    expect(rest!.metrics).toMatchObject({ 'groups/dropped_constant': 32, 'env/all/by_group/frac_all_good': 1 });
    expect(lines()).toHaveLength(160);
    expect(lines().map(({ order, traj_idx }) => `${String(order)}.${String(traj_idx)}`)).toStrictEqual(
      Array.from({ length: 160 }, (_, index) => `${Math.floor(index / 4)}.${index % 4}`),
    );
    expect(lines().map(({ iteration, group_idx }) => `${String(iteration)}.${String(group_idx)}`)[20]).toBe('1.1');
  });

  it('are logged before the step that counts them', async () => {
    let seen = 0;
    const watched: RolloutHook<string, InstantSampler> = (task, policy, context) => {
      if (task === 'task 4') seen = lines().length;
      return agentOf((number, index) => (number === 4 ? index : 0))(task, policy, context);
    };
    const options = { group: 4, groupsPerBatch: 4, onEvent: () => {} };
    await lastValueFrom(
      tasks(5).pipe(reinforce<string, InstantSampler>(instantTrainer, watched, options), rlLog(folder)),
    );
    expect(seen).toBe(16);
  });
});

describe('operators between rollouts and grpo', () => {
  const learn = (
    between: (group: Group<string>) => boolean,
    { tasks: count = 12, maxStepsOffPolicy = 1 }: { tasks?: number; maxStepsOffPolicy?: number } = {},
  ) => {
    const policy = new LivePolicy<InstantSampler>();
    return lastValueFrom(
      tasks(count).pipe(
        rollouts<string, InstantSampler>(instantAgent, { policy, group: 2 }),
        filter(between),
        advantages<string>(),
        grpo<string, InstantSampler>(instantTrainer, { policy, groupsPerBatch: 2, maxStepsOffPolicy }),
        map(({ groups }) => groups.map(({ order }) => order)),
        toArray(),
      ),
    );
  };

  it('may drop groups: later tasks take their room', async () => {
    expect(await learn(({ order }) => order % 3 !== 1)).toStrictEqual([
      [0, 2],
      [3, 5],
      [6, 8],
      [9, 11],
    ]);
    expect(await learn(({ order }) => order < 9)).toStrictEqual([[0, 1], [2, 3], [4, 5], [6, 7], [8]]);
  });

  it('must keep the order of groups', async () => {
    const policy = new LivePolicy<InstantSampler>();
    const lastPassed = new Subject<void>();
    const passed = defer(() => (lastPassed.next(), EMPTY));
    const result = lastValueFrom(
      tasks(4).pipe(
        rollouts<string, InstantSampler>(instantAgent, { policy, group: 2 }),
        // The first group comes after the last one.
        mergeMap((group) => {
          if (group.order === 0)
            return lastPassed.pipe(
              take(1),
              map(() => group),
            );
          return group.order === 3 ? concat(of(group), passed) : of(group);
        }),
        grpo<string, InstantSampler>(instantTrainer, { policy, groupsPerBatch: 4 }),
      ),
    );
    await expect(result).rejects.toThrow('group 0 came to grpo after group 3: operators between');
  });

  it(
    'that drop what a batch waits for are named after a minute, and end the run after timeoutMs',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const policy = new LivePolicy<LoopSampler>();
      const warnings: string[] = [];
      const agent: RolloutHook<string, LoopSampler> = (_, own, { index }) =>
        own.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: index })));
      let failure: unknown;
      tasks(4)
        .pipe(
          rollouts<string, LoopSampler>(agent, {
            ...{ policy, group: 2, timeoutMs: 600_000, scheduler: m.scheduler },
            onEvent: (event) => {
              if (event.type === 'rl-warning') warnings.push(`${m.scheduler.now()} ${event.code} ${event.message}`);
            },
          }),
          filter(({ order }) => order !== 1),
          grpo<string, LoopSampler>(trainer, { policy, groupsPerBatch: 2, scheduler: m.scheduler }),
        )
        .subscribe({ error: (error: unknown) => (failure = error) });
      m.flush();
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatch(/^60002 groups-missing training waits for groups .* 2 left it, 1 reached grpo\./);
      expect(failure).toMatchObject({ code: 'invalid_input', message: expect.stringContaining('filter') as string });
      expect(m.scheduler.now()).toBe(660_002);
    }),
  );
});
