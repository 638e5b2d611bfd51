import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { patternOf, shapeOf } from './support/runSnippet.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** Runs an example without a key, so on the embedded service, and sees that it prints what examples/README.md shows. */
async function output(example: string): Promise<string> {
  const { TINKER_API_KEY: _, TINKER_BASE_URL: __, ...env } = process.env;
  const { stdout } = await run(process.execPath, ['--import', 'tsx', `examples/${example}.ts`], {
    cwd: root,
    // Without the paths of tsconfig.json, which lead to the source: what users have is the built package.
    env: { ...env, TSX_TSCONFIG_PATH: 'tsconfig.build.json' },
  });
  expect(shapeOf(stdout)).toMatch(patternOf(shown(example)));
  return stdout;
}

function shown(example: string): string {
  const index = readFileSync(`${root}/examples/README.md`, 'utf8');
  const [, section = ''] = index.split(`## [${example}.ts]`);
  return /```text\n([^]*?)\n```/.exec(section)?.[1] ?? '';
}

const codeLines = (example: string): number =>
  readFileSync(`${root}/examples/${example}.ts`, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length;

beforeAll(() => {
  if (!existsSync(`${root}/dist/index.js`)) throw new Error('examples run on the built package: `npm run build` first');
});

describe('examples', () => {
  it('sft: the loss on the answers falls under 0.1 nats a token and the answer is learned', async () => {
    const text = await output('sft');
    const losses = [...text.matchAll(/step \d+: ([\d.]+) nats/g)].map(([, loss]) => Number(loss));
    expect(losses.length).toBe(8);
    expect(losses.at(-1)).toBeLessThan(0.1);
    expect(text).toMatch(/after: .*"Paris"/);
    expect(text.match(/^saved tinker:\/\//gm)).toHaveLength(2);
  }, 60_000);

  it('rl: the mean reward goes from under 0.2 to over 0.8', async () => {
    const rewards = [...(await output('rl')).matchAll(/mean reward ([\d.]+)/g)].map(([, reward]) => Number(reward));
    expect(rewards[0]).toBeLessThan(0.2);
    expect(rewards.at(-1)).toBeGreaterThan(0.8);
  }, 120_000);

  it('processes: three processes sample through a handle', async () => {
    expect((await output('processes')).match(/^What color is .*\? It is .*$/gm)).toHaveLength(3);
  }, 120_000);

  it.each(['sft', 'rl', 'processes'])('%s takes at most 40 lines of code', (example) => {
    expect(codeLines(example)).toBeLessThanOrEqual(40);
  });
});
