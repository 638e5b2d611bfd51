import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { candidatesFor } from '../../../src/cli/doctor/complete.js';
import { buildProgram } from '../../../src/cli/program.js';
import { run, surroundings } from './terminal.js';

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const program = buildProgram({ surroundings: surroundings().surroundings, finish: () => {} });

it('says its version', async () => {
  for (const word of ['version', '--version', '-V'])
    expect(await run([word])).toStrictEqual({ code: 0, stdout: `tinker-rx ${version}\n`, stderr: '' });
});

it('starts with commander alone: all else is loaded by the command that needs it', () => {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (url: URL) => {
    if (seen.has(url.href)) return;
    seen.add(url.href);
    const text = readFileSync(url, 'utf8');
    for (const [, target] of text.matchAll(/^(?:import|export) (?!type )(?:[^;]*? from )?'([^']+)';/gm)) {
      if (target!.startsWith('.')) visit(new URL(target!.replace(/\.js$/, '.ts'), url));
      else packages.add(target!);
    }
  };
  visit(new URL('../../../src/cli/main.ts', import.meta.url));
  expect(seen.size).toBeGreaterThan(10);
  expect([...packages].filter((name) => !name.startsWith('node:'))).toStrictEqual(['commander']);
});

describe('a command that is written wrongly ends with 2, a sentence on standard error, and nothing else', () => {
  it.each([
    [['nonsense'], /^Error: unknown command 'nonsense'/],
    [['chekpoint', 'list'], /Did you mean checkpoint\?/],
    [['run', 'info'], /missing required argument 'run-id'/],
    [['run', 'list', '--limit', 'x'], /Expected a whole number from 0 on/],
    [['run', 'list', '--format', 'xml'], /Allowed choices are table, json/],
    [['run', 'list', '-c', 'id,shoe'], /Unknown column\(s\): shoe\nAvailable: id, model/],
    [['sample', 'hi'], /required option '-m, --model <model>'/],
    [['sample', '-m', 'x', 'hi', '--file', 'y'], /Give a prompt or --file, not both/],
    [['checkpoint', 'delete'], /Must specify checkpoint paths or --run-id/],
    [['checkpoint', 'delete', 'tinker://a/weights/b', '--run-id', 'a'], /Cannot specify both/],
    [['checkpoint', 'delete', 'tinker://a/weights/b', '--type', 'weights'], /require --run-id/],
    [['checkpoint', 'delete', '--run-id', 'a', '--type', 'shoes'], /Invalid checkpoint type: shoes/],
    [['checkpoint', 'delete', '--run-id', 'a', '--before', 'soon'], /Invalid date: soon/],
    [['checkpoint', 'set-ttl', 'tinker://a/weights/b'], /Must specify either --ttl <seconds> or --remove/],
    [['checkpoint', 'set-ttl', 'tinker://a/weights/b', '--ttl', '3600', '--remove'], /Cannot specify both/],
    [['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
    [['train', '--resume', 'x', '--seed', '1'], /A resumed run keeps its seed/],
    [['train'], /No data/],
    [['train', '--dashboard', 'chats.jsonl'], /Expected a port/],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/ {4}at /);
    expect({ code, stdout }).toStrictEqual({ code: 2, stdout: '' });
  });
});

it.each([
  [['checkpoint', 'info', 'weights/1'], 'Invalid checkpoint path: weights/1'],
  [['checkpoint', 'download', 'tinker://a/sampler_weights/b'], 'Sampler checkpoints cannot be downloaded'],
  [['train', 'missing.jsonl', '-m', 'x'], 'missing.jsonl: no such file'],
  [['sample', '-m', 'x', '--file', 'missing.txt'], 'missing.txt: no such file or folder'],
])('%j fails with 1', async (args, message) => {
  const { code, stderr } = await run(args);
  expect(stderr).toContain(`Error: ${message}`);
  expect(code).toBe(1);
});

it('shows help for a command by its name', async () => {
  const { code, stdout } = await run(['help', 'sample']);
  expect(code).toBe(0);
  expect(stdout).toContain('--max-tokens <n>');
});

it('shows help on standard output and ends with 0', async () => {
  const { code, stdout, stderr } = await run(['checkpoint', '--help'], { columns: 80 });
  expect({ code, stderr }).toStrictEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('push-hf');
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
});

describe('completion', () => {
  it.each([
    [['che'], ['checkpoint']],
    [
      ['checkpoint', 'd'],
      ['delete', 'download'],
    ],
    [
      ['checkpoint', 'download', '--'],
      ['--base-url', '--force', '--format', '--help', '--output', '--version'],
    ],
    [
      ['run', 'list', '--format', ''],
      ['json', 'table'],
    ],
    [
      ['train', '--schedule', 'c'],
      ['constant', 'cosine'],
    ],
    [['train', '--log', ''], []],
    [
      ['completion', ''],
      ['bash', 'fish', 'zsh'],
    ],
    [['completion', 'bash', ''], []],
    [['run', 'list', '--format=j'], ['--format=json']],
    [['run', 'list', '--format', '=', 'j'], ['json']],
    [
      ['run', 'list', '--format', '='],
      ['json', 'table'],
    ],
    [['-f', 'json', 'ses'], ['session']],
    [['sample', '-m', 'checkpoint', '--raw', ''], []],
    [['train', '--dashboard', '--see'], ['--seed']],
  ])('%j', (words, expected) => expect(candidatesFor(program, words)).toStrictEqual(expected));

  it('hides what is not for people', () => expect(candidatesFor(program, [''])).not.toContain('__complete'));

  it('answers the scripts', async () => {
    expect(await run(['__complete', '--', 'session', '--fo'])).toMatchObject({ code: 0, stdout: '--format\n' });
    for (const shell of ['bash', 'zsh', 'fish'])
      expect((await run(['completion', shell])).stdout).toContain('tinker-rx __complete --');
  });
});
