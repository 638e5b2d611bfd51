import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasRedis, startRedis, startStandIn } from '../loopback/support/redisServers.js';
import { patternOf, shapeOf } from './runSnippet.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** Inside the package, so that it can be imported by its name. */
const compiled = `${root}/artifacts/examples-${process.pid}`;
/** These start TypeScript in other processes, by tsx, as a reader does. For the others it would only take a second of CPU time each. */
const BY_TSX = new Set(['processes', 'rlProcesses']);
const compilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2022,
  verbatimModuleSyntax: true,
};

function compile(): void {
  mkdirSync(compiled, { recursive: true });
  symlinkSync(`${root}/examples/data`, `${compiled}/data`, 'dir');
  for (const name of readdirSync(`${root}/examples`).filter((each) => each.endsWith('.ts'))) {
    const source = readFileSync(`${root}/examples/${name}`, 'utf8');
    const { outputText } = ts.transpileModule(source, { compilerOptions });
    writeFileSync(`${compiled}/${name.replace(/ts$/, 'js')}`, outputText);
  }
}

/** Runs an example without a key, so on the embedded service, and sees that it prints what examples/README.md shows. */
async function output(example: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const { TINKER_API_KEY: _, TINKER_BASE_URL: __, ...env } = process.env;
  const program = BY_TSX.has(example) ? ['--import', 'tsx', `examples/${example}.ts`] : [`${compiled}/${example}.js`];
  const { stdout } = await run(process.execPath, program, {
    cwd: root,
    // Without the paths of tsconfig.json, which lead to the source: what users have is the built package.
    env: { ...env, ...more, TSX_TSCONFIG_PATH: 'tsconfig.build.json' },
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
  compile();
});
afterAll(() => rmSync(compiled, { recursive: true, force: true }));

describe('examples', () => {
  const numbers = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, number]) => Number(number));

  it('sft: the loss on the answers falls under 0.1 nats per token and the answer is learned', async () => {
    const text = await output('sft');
    const losses = [...text.matchAll(/step \d+: ([\d.]+) nats/g)].map(([, loss]) => Number(loss));
    expect(losses.length).toBe(8);
    expect(losses.at(-1)).toBeLessThan(0.1);
    expect(text).toMatch(/after: .*"Paris"/);
    expect(text.match(/^saved tinker:\/\//gm)).toHaveLength(2);
  });

  it('evaluate: the second evaluation is found to be better', async () => {
    const text = await output('evaluate');
    const [before, after] = numbers(text, /: ([\d.]+) right/g);
    expect(before).toBeLessThan(0.4);
    expect(after).toBeGreaterThan(0.8);
    expect(text).toMatch(/^\d+ improved, 0 regressed, \d+ the same: better$/m);
  });

  it('decide: decisions become accurate, and as sure as they are right', async () => {
    const text = await output('decide');
    const [before, after] = numbers(text, /accuracy ([\d.]+)/g);
    expect(before).toBeLessThan(0.5);
    expect(after).toBeGreaterThan(0.9);
    expect(numbers(text, /calibration error ([\d.]+)/g)[1]).toBeLessThan(0.1);
  });

  it('prices: a run is counted and priced', async () => {
    // A list that was read just now, so that nothing is asked for on the network.
    const cache = mkdtempSync(join(tmpdir(), 'tinker-rx-example-prices-'));
    mkdirSync(join(cache, 'tinker-rx'));
    const list = JSON.parse(readFileSync(`${root}/assets/prices.json`, 'utf8')) as object;
    const url = 'https://tinker-docs.thinkingmachines.ai/tinker/models.json';
    writeFileSync(join(cache, 'tinker-rx', 'prices.json'), JSON.stringify({ ...list, url, readAtMs: Date.now() }));
    const text = await output('prices', { XDG_CACHE_HOME: cache });
    rmSync(cache, { recursive: true });
    expect(text).toMatch(/^prices as of \d{4}-\d\d-\d\d$/m);
    expect(numbers(text, /: \$([\d.]+)/g)[0]).toBeGreaterThan(0);
  });

  it('hosted: the trained model answers through the AI SDK', async () => {
    expect(await output('hosted')).toBe('I am the model that you trained.\n');
  });

  it('traffic: what users liked makes another model better', async () => {
    expect(await output('traffic')).toMatch(/^\d+ liked answers: \d+ improved, 0 regressed: better$/m);
  });

  it('rl: the mean reward goes from under 0.2 to over 0.8', async () => {
    const rewards = [...(await output('rl')).matchAll(/mean reward ([\d.]+)/g)].map(([, reward]) => Number(reward));
    expect(rewards[0]).toBeLessThan(0.2);
    expect(rewards.at(-1)).toBeGreaterThan(0.8);
  });

  it('rlAsync: the mean reward rises over 0.6, and no answer is older than asked', async () => {
    const text = await output('rlAsync');
    const rewards = numbers(text, /mean reward ([\d.]+)/g);
    expect(rewards[0]).toBeLessThan(0.2);
    expect(Math.max(...rewards)).toBeGreaterThan(0.6);
    expect(Math.max(...numbers(text, /weights (\d+) steps old/g))).toBeLessThanOrEqual(2);
  });

  it('rlTools: the tool is called, and the reward rises with it', async () => {
    const text = await output('rlTools');
    const rewards = numbers(text, /mean reward ([\d.]+)/g);
    const calls = numbers(text, /, ([\d.]+) calls/g);
    expect(Math.max(...rewards)).toBeGreaterThan(rewards[0]! + 0.3);
    expect(Math.max(...calls)).toBeGreaterThan(calls[0]! + 0.3);
  });

  it('mcp: a tool of an MCP server is called, and the reward rises with it', async () => {
    const text = await output('mcp');
    const rewards = numbers(text, /mean reward ([\d.]+)/g);
    const calls = numbers(text, /, ([\d.]+) calls/g);
    expect(Math.max(...rewards)).toBeGreaterThan(rewards[0]! + 0.3);
    expect(Math.max(...calls)).toBeGreaterThan(calls[0]! + 0.3);
  });

  it('remote: an agent behind HTTP is trained', async () => {
    const rewards = numbers(await output('remote'), /mean reward ([\d.]+)/g);
    expect(rewards[0]).toBeLessThan(0.2);
    expect(rewards.at(-1)).toBeGreaterThan(0.6);
  });

  it('gguf: the exported file says what the trained model says', async () => {
    const MODEL = `${root}/test/parity/recorded/architectures/llama/model.gguf`;
    const [here, there] = (await output('gguf', { MODEL })).split('\n').map((line) => /"(.*)"/.exec(line)?.[1]);
    expect(here).toContain('Arr');
    expect(there).toBe(here);
  });

  it('rlJudge: the judge makes answers kinder', async () => {
    const kind = numbers(await output('rlJudge'), /: (\d+) % are kind/g);
    expect(kind[0]).toBeLessThanOrEqual(70);
    expect(kind.at(-1)).toBeGreaterThanOrEqual(85);
  });

  it('rlProcesses: two processes try tasks, and the mean reward rises over 0.8', async () => {
    const rewards = numbers(await output('rlProcesses'), /mean reward ([\d.]+)/g);
    expect(rewards[0]).toBeLessThan(0.3);
    expect(Math.max(...rewards)).toBeGreaterThan(0.8);
  });

  it('dpo: the loss falls from log 2, and every chosen answer is ahead', async () => {
    const text = await output('dpo');
    const losses = numbers(text, /loss ([\d.]+)/g);
    expect(losses[0]).toBeCloseTo(Math.LN2, 2);
    expect(losses.at(-1)).toBeLessThan(0.1);
    expect(numbers(text, /accuracy ([\d.]+)/g).at(-1)).toBe(1);
  });

  it('liveFeedback: what fifty clients post at once is trained on, none lost, and some are told to wait', async () => {
    const text = await output('liveFeedback');
    expect(text).toMatch(/^50 accepted, 50 trained on; told to wait \d+ times$/m);
    expect(numbers(text, /told to wait (\d+) times/g)[0]).toBeGreaterThan(0);
    expect(numbers(text, /accuracy ([\d.]+)/g).at(-1)).toBe(1);
  });

  const redis = hasRedis ? 'redis-server' : 'a stand-in, since redis-server is not installed';
  it(`redis: rows that no checkpoint holds come again, and all are acknowledged in the end (on ${redis})`, async () => {
    await using server = await (hasRedis ? startRedis() : startStandIn());
    const text = await output('redis', { REDIS_URL: server.url });
    expect(text).toContain('steps 3 to 6, from "Is this row 9?" on');
    expect(text).toContain('0 of 24 rows are not acknowledged');
  });

  it('distill: the student comes nearer to its teacher', async () => {
    const apart = numbers(await output('distill'), /: (-?[\d.]+) nats/g);
    expect(apart.at(-1)).toBeLessThan(0.6 * apart[0]!);
  }, 180_000);

  it('softTargets: the student learns what its teacher finds likely', async () => {
    const apart = numbers(await output('softTargets'), /: ([\d.]+) nats/g);
    expect(apart.at(-1)).toBeLessThan(apart[0]! / 2);
  });

  it('customLoss: the loss agrees with itself, and falls', async () => {
    const text = await output('customLoss');
    expect(text).toContain('agree: true');
    const losses = numbers(text, /loss ([\d.]+)/g);
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 100);
  });

  it('sweep: three models are trained at once, and one is best', async () => {
    const text = await output('sweep');
    const ends = numbers(text, /to ([\d.]+) nats in 20 steps/g);
    expect(ends).toHaveLength(3);
    expect(Math.min(...ends)).toBeLessThan(0.1);
    expect(text).toContain('best: 0.01');
  });

  it('oneReading: trains and evaluates from one reading, with memory flat', async () => {
    // The rows of the file take 61 MB as text alone.
    const text = await output('oneReading', { NODE_OPTIONS: '--max-old-space-size=64' });
    expect(numbers(text, /held out: ([\d.]+)/g).at(-1)).toBeLessThan(0.1);
    expect(text).toContain('200000 rows were read once');
  });

  it('deadLetters: a second run takes exactly what failed, and nothing is left', async () => {
    const text = await output('deadLetters');
    expect(text).toContain('kept: rows 0, 10, 20, 30, 40\nsecond run: 5 rows answered');
    expect(text).toContain('rows that are left: none');
  });

  it('processes: three processes sample through a handle', async () => {
    expect((await output('processes')).match(/^What color is .*\? It is .*$/gm)).toHaveLength(3);
  });

  it('rl takes at most 15 lines of code', () => expect(codeLines('rl')).toBeLessThanOrEqual(15));

  it.each([
    ...['sft', 'rl', 'rlAsync', 'rlTools', 'rlJudge', 'rlProcesses', 'rlWorker', 'processes', 'dpo', 'distill'],
    ...['softTargets', 'customLoss', 'sweep', 'decide', 'prices', 'traffic', 'mcp', 'hosted', 'remote', 'gguf'],
    ...['oneReading', 'deadLetters', 'liveFeedback', 'redis', 'redisRows'],
  ])('%s takes at most 40 lines of code', (example) => {
    expect(codeLines(example)).toBeLessThanOrEqual(40);
  });
});
