import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { reinforce, rlLog, RolloutsFailedError, singleTurn } from '../../src/rl/index.js';

describe('a run on the embedded service whose reward is wrong', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rl-reward-'));
  let local: LocalTinker;
  let service: ServiceClient;
  let trainer: TrainingClient;
  const printed: string[] = [];

  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
  });
  afterEach(() => void vi.restoreAllMocks());
  afterAll(async () => {
    await service.close();
    await local.close();
    rmSync(folder, { recursive: true });
  });

  const learn = async (name: string, reward: (text: string) => number) => {
    printed.length = 0;
    vi.spyOn(console, 'error').mockImplementation((line: string) => void printed.push(line));
    const renderer = await trainer.getRenderer();
    const quiz = singleTurn<string>({
      renderer,
      prompt: (word) => `Say ${word}`,
      reward: ({ text }) => reward(text),
      samplingParams: { maxTokens: 4 },
    });
    const words = Array.from({ length: 12 }, (_, index) => `word ${index}`);
    return lastValueFrom(
      from(words).pipe(reinforce(trainer, quiz, { group: 4, groupsPerBatch: 4 }), rlLog(join(folder, name))),
      { defaultValue: undefined },
    );
  };
  const lines = (name: string) =>
    readFileSync(join(folder, name, 'rollouts.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');

  it.each([
    [
      'a typo',
      (text: string) => (text as unknown as { leng: () => number }).leng(),
      /TypeError: .*rlReward\.test\.ts:\d+/,
    ],
    ['NaN', () => NaN, /the reward of singleTurn \(.*rlReward\.test\.ts:\d+:\d+\) is NaN/],
  ])('ends with an error that names its line: %s', async (name, reward, place) => {
    const failure: unknown = await learn(name, reward).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RolloutsFailedError);
    expect((failure as Error).message).toMatch(place);
    // The first of its kind, and at the end how many there were.
    expect(printed).toHaveLength(2);
    expect(printed[0]).toMatch(place);
    expect(lines(name)).toHaveLength(16);
    expect(lines(name).every((line) => 'error' in (JSON.parse(line) as object))).toBe(true);
  });

  it('of always 0 logs every answer and says that nothing was learned', async () => {
    expect(await learn('zero', () => 0)).toBeUndefined();
    expect(lines('zero')).toHaveLength(48);
    expect(printed.at(-1)).toBe(
      'tinker-rx warning: the last 12 groups taught nothing and are in no step: 48 answers, mean reward 0',
    );
  });
});
