/** What three programs of the pages promise. All of them are run as readers run them, in test/package/guides.test.ts. */
import { existsSync } from 'node:fs';
import { beforeAll, expect, it } from 'vitest';
import { root, snippetsOf } from '../unit/docs/snippets.js';
import { patternOf, runSnippet, shapeOf } from './runSnippet.js';

beforeAll(() => {
  if (!existsSync(`${root}dist/index.js`)) throw new Error('snippets run on the built package: `npm run build` first');
});

const [first] = snippetsOf('README.md');
const [grpo] = snippetsOf('docs/rl.md');
const counted = snippetsOf('docs/training-order.md').find(({ runs }) => runs);

it('the first program of the README trains: its loss falls under 0.1 nats per token', async () => {
  const printed = await runSnippet(first!.source);
  expect(shapeOf(printed)).toMatch(patternOf(first!.output!));
  const losses = [...printed.matchAll(/^step \d+: ([\d.]+)/gm)].map(([, loss]) => Number(loss));
  expect(losses).toHaveLength(40);
  expect(losses.at(-1)).toBeLessThan(0.1);
});

it('the first program of the page on reinforcement learning raises its reward', async () => {
  const printed = await runSnippet(grpo!.source);
  expect(shapeOf(printed)).toMatch(patternOf(grpo!.output!));
  const rewards = [...printed.matchAll(/reward ([\d.]+)$/gm)].map(([, reward]) => Number(reward));
  expect(rewards[0]).toBeLessThan(0.3);
  expect(rewards.at(-1)).toBeGreaterThan(0.8);
});

it('the program of the page on training order counts exactly the cycles that it shows', async () => {
  expect((await runSnippet(counted!.source)).trimEnd()).toBe(counted!.output);
});
