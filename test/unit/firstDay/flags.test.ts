/** Flags that newcomers try, and help that lists only what a command takes. */
import { describe, expect, it } from 'vitest';
import { run } from '../cli/terminal.js';

describe('an unknown flag', () => {
  it.each([
    ['train', '--lr', '--learning-rate'],
    ['grpo', '--batch-size', '--groups-per-batch'],
    ['distill', '--batch-size', '--groups-per-batch'],
    ['train', '--groups-per-batch', '--batch-size'],
    ['train', '--base-model', '--model'],
  ])('%s %s is answered with %s', async (command, flag, meant) => {
    const { code, stderr } = await run([command, 'data.jsonl', flag, '1']);
    expect(stderr).toBe(`Error: unknown option '${flag}'\n(Did you mean ${meant}?)\n`);
    expect(code).toBe(2);
  });

  it('gets no flag that the command does not have', async () => {
    expect((await run(['chat', '-m', 'x', '--lr', '1'])).stderr).toBe("Error: unknown option '--lr'\n");
  });
});

it('distill takes --groups-per-batch, as grpo does', async () => {
  for (const command of ['distill', 'grpo'])
    expect((await run([command, '--help'])).stdout).toContain('--groups-per-batch <n>');
});

it('the help of eval compare lists its own options and those of the program only', async () => {
  const { stdout } = await run(['eval', 'compare', '--help']);
  expect(stdout).toContain('--fail-if-worse');
  expect(stdout).toContain('--base-url <url>');
  expect(stdout).not.toContain('--scorer');
  expect(stdout).not.toContain('--num-samples');
});
