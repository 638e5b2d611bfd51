/** The tables of options of commands. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Option } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as checkpoint from '../../../src/cli/checkpoint/command.js';
import type { CommandOptions } from '../../../src/cli/declare.js';
import { DOCTOR } from '../../../src/cli/doctor/command.js';
import { COMPARE, EVAL } from '../../../src/cli/eval/command.js';
import { DEMO, LOCAL } from '../../../src/cli/local/command.js';
import { CHAT, SAMPLE } from '../../../src/cli/sample/command.js';
import { DASHBOARD, SERVE } from '../../../src/cli/serve/command.js';
import * as session from '../../../src/cli/session/command.js';
import { DISTILL, DPO, GRPO, TRAIN, type RunOptions } from '../../../src/cli/run/options.js';
import { planRun } from '../../../src/cli/run/planRun.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-options-'));
  writeFileSync(join(folder, 'data.jsonl'), '{}\n');
});
afterEach(() => rmSync(folder, { recursive: true }));

const TABLES: readonly (readonly [string, RunOptions])[] = [
  ['train', TRAIN],
  ['dpo', DPO],
  ['distill', DISTILL],
  ['grpo', GRPO],
];

const OTHERS: readonly (readonly [string, CommandOptions])[] = [
  ...Object.entries({ SAMPLE, CHAT, EVAL, COMPARE, DEMO, LOCAL, SERVE, DASHBOARD, DOCTOR }),
  ...Object.entries({ ...checkpoint, SESSION_SEARCH: session.SEARCH }).flatMap(([name, table]) =>
    typeof table === 'function' ? [] : [[name, table] as const],
  ),
];

it.each([...TABLES, ...OTHERS])('%s names each option as Commander does', (_, table) => {
  const keys = Object.keys(table);
  expect(Object.values(table).map(({ flag }) => new Option(flag).attributeName())).toStrictEqual(keys);
});

describe.each(TABLES)('%s', (_, table) => {
  it('has a budget, a seed, and flags for what LoRA trains', () => {
    expect(Object.keys(table)).toEqual(
      expect.arrayContaining(['budgetUsd', 'budgetTokens', 'seed', 'trainMlp', 'trainAttn', 'trainUnembed']),
    );
  });
});

describe('planRun', () => {
  const command = { name: 'train', options: TRAIN };
  const data = () => join(folder, 'data.jsonl');
  const save = (config: object) => writeFileSync(join(folder, 'config.json'), JSON.stringify(config));

  it('fills in defaults, and keeps what this process alone needs out of the configuration', async () => {
    const given = {
      model: 'm',
      log: join(folder, 'run'),
      dashboard: true,
      trainMlp: true,
      trainUnembed: false,
    } as const;
    const { config, folder: log, resumed } = await planRun(command, given, data(), 0);
    expect([log, resumed]).toStrictEqual([join(folder, 'run'), false]);
    expect(config).toMatchObject({ command: 'train', model: 'm', rank: 32, trainMlp: true, trainUnembed: false });
    expect(config.data).toBe(resolve(data()));
    expect(Object.keys(config)).not.toEqual(expect.arrayContaining(['log']));
    expect(Object.keys(config)).not.toEqual(expect.arrayContaining(['dashboard']));
  });
  it('resumes with what was saved, with defaults for what an older version did not save', async () => {
    save({ data: data(), model: 'm', rank: 4, budgetTokens: 10 });
    const { config } = await planRun(command, { resume: folder, budgetTokens: 20 }, undefined, 0);
    expect(config).toMatchObject({ rank: 4, budgetTokens: 20, batchSize: 128, trainUnembed: true });
  });
  it.each([
    [{ rank: 8 }, /keeps its rank/],
    [{ trainUnembed: false }, /keeps its trainUnembed/],
    [{ validation: 'x' }, /keeps its validation/],
  ])('refuses to resume with %j', async (given, message) => {
    save({ data: data(), model: 'm' });
    await expect(planRun(command, { resume: folder, ...given }, undefined, 0)).rejects.toThrow(message);
  });
  it('names the command that the run belongs to', async () => {
    save({ command: 'dpo', data: data() });
    await expect(planRun(command, { resume: folder }, undefined, 0)).rejects.toMatchObject({
      message: expect.stringContaining('holds a run of tinker-rx dpo') as string,
      details: expect.stringContaining('tinker-rx dpo --resume') as string,
    });
  });
  it('says which file of the run has moved', async () => {
    save({ data: data(), model: 'm', validation: join(folder, 'gone.jsonl') });
    await expect(planRun(command, { resume: folder }, undefined, 0)).rejects.toThrow('gone.jsonl: no such file');
    expect(readFileSync(join(folder, 'config.json'), 'utf8')).toContain('gone');
  });
});
