import { from, lastValueFrom, map, NEVER, of, throwError, toArray } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ByteTokenizer, getRenderer } from '../../../src/chat/index.js';
import {
  groupRewards,
  reinforce,
  type ReinforceOptions,
  type RlEvent,
  type Rollout,
  rollouts,
  RolloutsFailedError,
  singleTurn,
  type SingleTurnOptions,
  weightedRewards,
} from '../../../src/rl/index.js';
import { groupOf, PROMPT, turnOf } from '../../marbles/fakeLoop.js';
import { instantSampler, instantTrainer, type InstantSampler } from '../../marbles/instantLoop.js';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
type Reward = SingleTurnOptions<string>['reward'];
const quiz = (reward: unknown) =>
  singleTurn<string, InstantSampler>({ renderer, prompt: () => PROMPT, reward: reward as Reward });
const tasks = (count: number) => from(Array.from({ length: count }, (_, index) => `task ${index}`));
const learn = (reward: unknown, options: Partial<ReinforceOptions<string, InstantSampler>> = {}, count = 8) =>
  lastValueFrom(
    tasks(count).pipe(
      reinforce<string, InstantSampler>(instantTrainer, quiz(reward), { group: 4, groupsPerBatch: 2, ...options }),
      toArray(),
    ),
  );

describe('a reward that fails', () => {
  afterEach(() => void vi.restoreAllMocks());
  const printed = () => {
    const lines: string[] = [];
    vi.spyOn(console, 'error').mockImplementation((line: string) => void lines.push(line));
    return lines;
  };

  it('ends a run of nothing but failures with an error that has its line, and warns once', async () => {
    const lines = printed();
    const broken = (answer: { text: string }) => (answer as unknown as { txt: string }).txt.length;
    const failure = await learn(broken).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RolloutsFailedError);
    expect(failure).toMatchObject({ code: 'rollouts_failed', retryable: false });
    const place = /failures\.test\.ts:\d+:\d+\)/;
    expect((failure as Error).message).toMatch(/^all rollouts of 2 groups in a row failed, a whole batch: TypeError/);
    expect((failure as Error).message).toMatch(place);
    expect((failure as Error).message).toContain('(8 times)');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      /^tinker-rx warning: a rollout failed: TypeError: Cannot read .*failures\.test\.ts:\d+:\d+\)/,
    );
    expect(lines[1]).toMatch(/^tinker-rx warning: 8 rollouts failed: TypeError/);
  });

  it('is told once for each kind and counted after that, while the run goes on', async () => {
    const lines = printed();
    let asked = 0;
    const flaky = () => {
      asked++;
      if (asked % 8 === 0) throw new RangeError(`draw ${asked}`);
      return asked % 8 === 4 ? NaN : asked % 2;
    };
    const steps = await learn(flaky);
    expect(steps.length).toBeGreaterThan(0);
    expect(lines.filter((line) => line.includes('a rollout failed'))).toHaveLength(2);
    expect(lines.some((line) => /the reward of singleTurn \(.*failures\.test\.ts:\d+:\d+\) is NaN/.test(line))).toBe(
      true,
    );
    expect(lines.at(-1)).toMatch(/^tinker-rx warning: 4 rollouts failed: RangeError/);
  });

  it('is told to a listener, with its line among the failures of the group', async () => {
    const events: RlEvent[] = [];
    const agent = () => throwError(() => new Error('no'));
    const group = await lastValueFrom(
      of('task').pipe(
        rollouts(agent, { policy: instantSampler, group: 2, onEvent: (event: RlEvent) => events.push(event) }),
      ),
    );
    expect(group.failures).toMatchObject([
      { index: 0, place: expect.stringContaining('failures.test.ts') as string },
      {},
    ]);
    const warnings = events.filter((event) => event.type === 'rl-warning');
    expect(warnings.map(({ code }) => code)).toStrictEqual(['rollouts-failed', 'rollouts-failed']);
  });

  it('does not end a run where some rollouts of each batch succeed, nor one whose last small batch fails', async () => {
    printed();
    let asked = 0;
    const late = () => {
      asked++;
      if (asked > 16) throw new Error('late');
      return asked % 2;
    };
    expect(await learn(late, {}, 5)).toHaveLength(2);
  });

  it('ends a run whose groups cannot be judged', async () => {
    printed();
    const groupReward = () => throwError(() => new Error('judge asleep'));
    await expect(learn(() => 0, { groupReward })).rejects.toThrow('the group could not be judged: judge asleep');
  });
});

describe('what a reward may be', () => {
  const rewardsOf = async (reward: unknown) => {
    const options = { policy: instantSampler, group: 2, onEvent: () => {} };
    const { trajectories, failures } = await lastValueFrom(of('task').pipe(rollouts(quiz(reward), options)));
    return trajectories.length > 0 ? trajectories.map(({ reward: value }) => value) : failures[0]!.message;
  };

  it.each([
    ['true', () => true, 1],
    ['false', () => false, 0],
    ['a promise of true', () => Promise.resolve(true), 1],
    ['{ reward: true }', () => ({ reward: true, metrics: { a: 1 } }), 1],
    ['an observable', () => of(0.1, 0.25), 0.25],
  ])('takes %s', async (_, reward, expected) => {
    expect(await rewardsOf(reward)).toStrictEqual([expected, expected]);
  });

  it.each([
    ['text', () => '0.5', 'the text "0.5"'],
    ['undefined', () => undefined, 'undefined (is a return missing?)'],
    ['null', () => null, 'null'],
    ['an object', () => ({ score: 1 }), 'an object with score'],
    ['a promise of text', () => Promise.resolve('yes'), 'the text "yes"'],
    ['{ reward: text }', () => ({ reward: '1' }), 'the text "1"'],
    ['infinity', () => Infinity, 'Infinity'],
    ['a list', () => [1], 'a list'],
  ])('refuses %s and says what is accepted', async (_, reward, described) => {
    expect(await rewardsOf(reward)).toMatch(
      new RegExp(
        String.raw`^the reward of singleTurn \(.*\) is ${described.replace(/[()?.]/g, String.raw`\$&`)}; ` +
          'it must be a finite number, true or false, or { reward, metrics }$',
      ),
    );
  });

  it('names the one of several rewards that is wrong', async () => {
    const reward = weightedRewards<unknown, string>({ right: () => true, short: (() => 'no') as never });
    expect(await rewardsOf(reward)).toContain('the reward short is the text "no"');
  });

  it('may be true or false in a rollout and for a whole group', async () => {
    const agent = () => of({ turns: [turnOf([1], [2])], reward: true } as unknown as Rollout);
    const judged = groupRewards<string>(() => [true, false] as unknown as number[]);
    const group = await lastValueFrom(of('task').pipe(rollouts(agent, { policy: instantSampler, group: 2 }), judged));
    expect(group.trajectories.map(({ reward }) => reward)).toStrictEqual([2, 1]);
  });
});

describe('time limits', () => {
  it.each([2 ** 31, 1e12, Infinity])('a rollout, a group and their judge may take %d ms', async (timeoutMs) => {
    const steps = await learn(
      () => Promise.resolve(0),
      { timeoutMs, groupReward: (tries) => new Promise((done) => setTimeout(() => done(tries.map((_, i) => i)), 5)) },
      2,
    );
    expect(steps).toHaveLength(1);
  });

  it('a judge that never settles costs its group after timeoutMs', async () => {
    const judged = groupRewards<string>(() => NEVER, { timeoutMs: 5, onEvent: () => {} });
    const group = await lastValueFrom(of(groupOf(0, [1, 0])).pipe(judged));
    expect(group).toMatchObject({
      viable: false,
      failures: [
        { name: 'TimeoutError', message: 'the group could not be judged: judging the group took longer than 5 ms' },
      ],
    });
    expect(() => groupRewards(() => [], { timeoutMs: 0 })).toThrow('timeoutMs must be > 0, got 0');
    const never = lastValueFrom(
      tasks(2).pipe(
        reinforce<string, InstantSampler>(
          instantTrainer,
          quiz(() => 0),
          {
            ...{ group: 2, groupsPerBatch: 2, timeoutMs: 5, groupReward: () => NEVER, onEvent: () => {} },
          },
        ),
        map(({ index }) => index),
      ),
    );
    await expect(never).rejects.toThrow('judging the group took longer than 5 ms');
  });
});
