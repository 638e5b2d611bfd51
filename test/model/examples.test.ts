/** The two examples for a real model, as docs/laptop.md shows them: run on SmolLM2, from source. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { smollm2File } from './smollm2File.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const file = await smollm2File();

async function output(example: string): Promise<string> {
  const { TINKER_API_KEY: _, TINKER_BASE_URL: __, BASE_MODEL: ___, ...env } = process.env;
  const program = ['--import', 'tsx', `examples/${example}.ts`];
  const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: root, env: { ...env, MODEL: file! } });
  return stdout;
}

const numbers = (text: string, pattern: RegExp): number[] =>
  [...text.matchAll(pattern)].map(([, number]) => Number(number));

describe.skipIf(file === undefined)('examples on SmolLM2', () => {
  it('laptopSft: it answers like a pirate after six steps, also what it was not taught', async () => {
    const text = await output('laptopSft');
    expect(text.match(/^before: .*$/gm)).toHaveLength(2);
    expect(text).not.toMatch(/^before: .*Arr/m);
    expect(text).toMatch(/^after: What is the capital of Norway\? "Arr, Oslo it be, matey!"$/m);
    expect(text).toMatch(/^after: Who wrote Hamlet\? "Arr, .*matey!"$/m);
    const losses = numbers(text, /: ([\d.]+) nats/g);
    expect(losses).toHaveLength(6);
    expect(losses.at(-1)).toBeLessThan(0.5 * losses[0]!);
  });

  it('laptopRl: the share of short words rises', async () => {
    const shares = numbers(await output('laptopRl'), /: (\d+) % of the words/g);
    expect(shares).toHaveLength(6);
    const [first, last] = [shares.slice(0, 2), shares.slice(-2)].map(([a, b]) => (a! + b!) / 2);
    expect(last).toBeGreaterThan(first! + 10);
  });

  it.each(['laptopSft', 'laptopRl'])('%s has at most 40 lines', (example) => {
    const lines = readFileSync(`${root}/examples/${example}.ts`, 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(40);
  });
});
