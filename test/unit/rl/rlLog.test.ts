import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom, from, lastValueFrom, Observable, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { scored } from '../../../src/rl/learning/scored.js';
import { takeGroupListener } from '../../../src/rl/log/groupListener.js';
import { resumeRl, rlLog, type RlStep } from '../../../src/rl/index.js';
import { groupOf } from '../../marbles/fakeLoop.js';

describe('rlLog', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'rl-log-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const failures = [{ index: 2, name: 'Error', message: 'no', attempts: 1 }];
  const stepAt = (index: number, saves = false): RlStep<string> => ({
    ...{
      index,
      loss: 1,
      lossSum: 1,
      metrics: { 'optim/lr': 1 },
      datums: 2,
      tokens: 4,
      learningRate: 1,
      batches: index + 1,
    },
    ...{ durationMs: 1, reward: 0.5, groups: [scored(groupOf(index, [1, 0], { failures, tags: ['easy'] }))] },
    ...(saves
      ? {
          checkpoint: {
            name: `step-${index + 1}`,
            steps: index + 1,
            batches: index + 1,
            statePath: 'tinker://run/weights/a',
            kept: true,
          },
          resume: {
            steps: index + 1,
            next: index + 1,
            finished: [groupOf(index + 1, [1, 0])].map(({ task: _, ...group }) => group),
          },
        }
      : {}),
  });
  const log = (...steps: RlStep<string>[]) => lastValueFrom(from(steps).pipe(rlLog(folder), toArray()));
  const lines = (file: string) =>
    readFileSync(join(folder, file), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('writes each rollout under the names of the cookbook, failures too, and passes the steps on as they are', async () => {
    const step = stepAt(0);
    expect((await log(step))[0]).toBe(step);
    const [first, second, failed] = lines('rollouts.jsonl');
    expect(first).toMatchObject({
      ...{ schema_version: 1, split: 'train', iteration: 0, group_idx: 0, traj_idx: 0, order: 0, tags: ['easy'] },
      ...{
        sampling_client_step: 0,
        total_reward: 1,
        final_reward: 1,
        advantage: 0.5,
        trajectory_metrics: {},
        final_ob_len: 4,
      },
      steps: [{ step_idx: 0, ob_len: 2, ac_len: 2, episode_done: true, ob_tokens: [1, 2], ac_tokens: [3, 4] }],
    });
    expect(second).toMatchObject({ traj_idx: 1, advantage: -0.5 });
    expect(failed).toMatchObject({ traj_idx: 2, error: { name: 'Error', message: 'no', attempts: 1 } });
    expect(lines('metrics.jsonl')[0]).not.toHaveProperty('groups');
  });

  it('takes off what was written after the checkpoint that a run continues from, and puts an old run aside', async () => {
    await log(stepAt(0, true), stepAt(1));
    const { rl, checkpoint } = await firstValueFrom(resumeRl(folder));
    expect(checkpoint?.steps).toBe(1);
    expect(rl).toMatchObject({ steps: 1, next: 1, finished: [{ order: 1 }] });
    await log(stepAt(1), stepAt(2));
    expect(lines('rollouts.jsonl').map(({ iteration }) => iteration)).toStrictEqual([0, 0, 0, 1, 1, 1, 2, 2, 2]);
    await log(stepAt(0));
    expect(readdirSync(folder)).toContain('rollouts.1.jsonl');
    expect(lines('rollouts.jsonl')).toHaveLength(3);
  });

  it('starts over in the folder of an older run without losing the state of either', async () => {
    await log(...[0, 1, 2, 3, 4].map((index) => stepAt(index, true)));
    await log(stepAt(0, true));
    expect(await firstValueFrom(resumeRl(folder))).toMatchObject({ steps: 1, rl: { steps: 1 } });
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['rl-state-000001.json', 'rl-state-000005.1.json']));
    expect(readdirSync(folder)).not.toContain('rl-state-000005.json');
  });

  it('holds no run to continue when it is killed before its first step in the folder of an older run', async () => {
    await log(stepAt(0, true), stepAt(1, true));
    const killed = new Observable<RlStep<string>>(() => takeGroupListener()!(scored(groupOf(0, [1, 0])), 0, true));
    killed.pipe(rlLog(folder)).subscribe().unsubscribe();
    expect(await firstValueFrom(resumeRl(folder))).toStrictEqual({ steps: 0, batches: 0 });
    expect(lines('rollouts.jsonl')).toHaveLength(2);
  });

  it('forgets states of steps that are done again', async () => {
    await log(...[0, 1, 2, 3].map((index) => stepAt(index, true)));
    await log(stepAt(2, true));
    const states = readdirSync(folder).filter((name) => name.startsWith('rl-state'));
    expect(states.sort()).toStrictEqual(['rl-state-000002.json', 'rl-state-000003.json']);
  });

  it('keeps the newest three states', async () => {
    await log(...[0, 1, 2, 3, 4].map((index) => stepAt(index, true)));
    const states = readdirSync(folder).filter((name) => name.startsWith('rl-state'));
    expect(states.sort()).toStrictEqual(['rl-state-000003.json', 'rl-state-000004.json', 'rl-state-000005.json']);
  });

  it.each([
    ['torn', (text: string) => text.slice(0, 40), ':1: the state of a checkpoint is damaged after 40 characters'],
    ['empty', () => '', ':1: the state of a checkpoint is damaged after 0 characters'],
    ['of another shape', () => '{"version":1}', ':1: the state of a checkpoint is damaged'],
    ['missing', () => undefined, ': the state of a checkpoint cannot be read'],
  ])('passes over a state that is %s, says so, and continues from the one before', async (_, damage, message) => {
    await log(...[0, 1, 2].map((index) => stepAt(index, true)));
    const hurt = (steps: number) => {
      const path = join(folder, `rl-state-00000${steps}.json`);
      const text = damage(readFileSync(path, 'utf8'));
      if (text === undefined) rmSync(path);
      else writeFileSync(path, text);
      return `${path}${message}`;
    };
    const told: string[] = [];
    const resumed = () => firstValueFrom(resumeRl(folder, { onWarning: (warning) => told.push(warning) }));
    const newest = hurt(3);
    expect(await resumed()).toMatchObject({ steps: 2, checkpoint: { name: 'step-2' }, rl: { steps: 2, next: 2 } });
    expect(told).toStrictEqual([newest, 'continuing from step 2, the last one with a whole state']);
    hurt(2);
    hurt(1);
    await expect(resumed()).rejects.toThrow(newest);
  });

  it('names the line of a log that cannot be read', async () => {
    await log(stepAt(0, true), stepAt(1));
    const path = join(folder, 'metrics.jsonl');
    writeFileSync(path, `{"index":0}\n{"ind\n{"index":2}\n`);
    await expect(log(stepAt(1))).rejects.toThrow(`${path}:2: not valid JSON`);
  });

  it('a folder that does not exist is a new run', async () => {
    expect(await firstValueFrom(resumeRl(join(folder, 'none')))).toStrictEqual({ steps: 0, batches: 0 });
  });
});
