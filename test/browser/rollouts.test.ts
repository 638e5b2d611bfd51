import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { lastValueFrom, range, toArray } from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ModelInput, ServiceClient } from 'tinker-rx';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import { LocalTinker } from 'tinker-rx/local';
import { reinforce, rlLog, type RolloutHook } from 'tinker-rx/rl';
import { eventually, launch, open, picture } from './browser.js';

const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-rollouts-'));
let browser: Browser;
let local: LocalTinker;
let service: ServiceClient;
let dashboard: Dashboard;
beforeAll(async () => {
  browser = await launch();
  local = await LocalTinker.start();
  service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, logLevel: 'silent' });
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  await service?.close();
  await local?.close();
  rmSync(folder, { recursive: true });
});

const decode = (tokens: ArrayLike<number>): string =>
  Buffer.from(Uint8Array.from(tokens as number[])).toString('latin1');
const ints = (text: string): number[] => Array.from(Buffer.from(text));

/** Two turns with a tool's answer between them; the first turn of every fourth is masked, every eighth fails. */
const agent: RolloutHook<number> = async (task, policy, { index }) => {
  if (index === 7) throw new Error('the sandbox is gone');
  const sampling = { maxTokens: 10 };
  const first = await policy.turn(ModelInput.fromInts(ints(`Task ${task}: look it up. `)), sampling);
  const read = [...first.prompt.toInts(), ...first.sequence.tokens, ...ints(' [tool: 42 <b>] ')];
  const second = await policy.turn(ModelInput.fromInts(read), sampling);
  const letters = [...first.sequence.tokens, ...second.sequence.tokens].filter((token) => token === 101).length;
  const turns = [index % 4 === 3 ? { ...first, masked: true } : first, second];
  // Every fourth task pays all the same.
  return { turns, reward: task % 4 === 3 ? 1 : letters, metrics: { tool_calls: 1 }, tags: [task % 2 ? 'odd' : 'even'] };
};

/** What the page has of rollouts, however they came to it. */
async function looksRight(page: Page, reward: number): Promise<void> {
  const groups = page.locator('#rollout-list article');
  await eventually(
    () => page.locator('#rollout-count').textContent(),
    (said) => said === '1–12 of 16 groups',
  );
  expect(await groups.count()).toBe(12);
  expect(await groups.first().locator('.tries button').count()).toBe(8);
  expect(await groups.first().locator('header').textContent()).toMatch(
    /step 4.*task 16.*odd.*mean reward 1.*constant.*1 failed/,
  );
  for (const chart of ['Reward', 'Age of weights']) {
    await eventually(
      () => page.locator(`[data-chart="${chart}"] canvas`).count(),
      (count) => count === 1,
    );
  }
  const shown = Number(await page.locator('[data-tile="Reward"] dd').textContent());
  expect(shown).toBeCloseTo(reward, 2);
  expect(await groups.first().locator('.task').textContent()).toBe('Task 15: look it up.');
  // A trajectory as coloured turns, and one at a time.
  const [masked, plain] = [3, 0].map((index) => groups.nth(1).locator('.tries button').nth(index));
  const kinds = () =>
    groups
      .nth(1)
      .locator('.turn')
      .evaluateAll((turns) => turns.map((turn) => turn.getAttribute('data-kind')));
  await masked!.click();
  expect(await kinds()).toStrictEqual(['prompt', 'masked', 'tool', 'sampled']);
  await plain!.click();
  expect(await kinds()).toStrictEqual(['prompt', 'sampled', 'tool', 'sampled']);
  expect(await masked!.getAttribute('aria-expanded')).toBe('false');
  expect(await groups.nth(1).locator('[data-kind="prompt"]').textContent()).toBe('Task 14: look it up. ');
  // What was sampled is text, never markup.
  expect(await groups.nth(1).locator('[data-kind="tool"]').textContent()).toBe(' [tool: 42 <b>] ');
  expect(await groups.nth(1).locator('.facts').textContent()).toMatch(/try 1.*reward.*advantage.*tool_calls 1/);
  // Failures, in their group and all together.
  await groups.nth(2).locator('.tries button').nth(7).click();
  expect(await groups.nth(2).locator('.trajectory').textContent()).toContain('Error: the sandbox is gone');
  expect(await page.locator('#rollout-failure-rows tr').allTextContents()).toStrictEqual([
    '16Error: the sandbox is gonestep 4, task 16',
  ]);
  await page.locator('#rollout-kind').selectOption('dropped');
  await eventually(
    () => page.locator('#rollout-count').textContent(),
    (said) => said === '1–4 of 4 groups found in 16',
  );
  await page.locator('#rollout-kind').selectOption('');
  await page.locator('#rollout-order').selectOption('worst');
  const means = async () =>
    (await groups.locator('header').allTextContents()).map((facts) => Number(/mean reward ([\d.]+)/.exec(facts)![1]));
  await eventually(means, (all) => all.every((mean, place) => place === 0 || mean >= all[place - 1]!));
  await page.locator('#rollout-order').selectOption('newest');
}

it('shows groups with their rewards, trajectories as coloured turns, and failures: live, and from a log', async () => {
  const trainer = await service.createLoraTrainingClient({ baseModel: local.baseModels[0]!, rank: 8, seed: 1 });
  dashboard = await serveDashboard(service, { title: 'rollouts', decode });
  const { page, problems } = await open(browser, dashboard.url);
  expect(await page.locator('#rollouts').isVisible()).toBe(false);
  const steps = await lastValueFrom(
    range(0, 16).pipe(
      reinforce(trainer, agent, { group: 8, groupsPerBatch: 4, maxStepsOffPolicy: 1, adam: { learningRate: 5e-3 } }),
      rlLog(join(folder, 'run'), { decode }),
      dashboard.showSteps('tools'),
      toArray(),
    ),
  );
  expect(steps.map(({ groups }) => groups.length)).toStrictEqual([4, 4, 4, 4]);
  const { reward } = steps.at(-1)!;
  await looksRight(page, reward);
  await page.locator('#rollout-list article').nth(1).locator('.tries button').nth(3).click();
  await picture(page, 'rollouts');
  // A page that comes late sees the same, in the dark as well, and on a phone.
  const late = await open(browser, dashboard.url, { viewport: { width: 420, height: 900 }, colorScheme: 'dark' });
  await looksRight(late.page, reward);
  await late.page.locator('#rollouts').scrollIntoViewIfNeeded();
  await picture(late.page, 'rollouts-phone-dark', false);
  const wide = await late.page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBeLessThanOrEqual(420);
  const logged = await serveDashboard({ log: folder }, { title: 'log' });
  try {
    const read = await open(browser, logged.url);
    await looksRight(read.page, reward);
    expect([...problems, ...late.problems, ...read.problems]).toStrictEqual([]);
  } finally {
    await logged.close();
  }
});
