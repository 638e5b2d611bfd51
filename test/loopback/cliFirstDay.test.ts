/** The first day at the command line: what it says to the usual mistakes, and what it takes for a model. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Subject } from 'rxjs';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';
import { commandHome } from './support/commandHome.js';
import { runCli } from '../../src/cli/program.js';
import { type FakeTerminal, run, type Ran, surroundings } from '../unit/cli/terminal.js';

const TINY = ['-m', 'tinker-rx/tiny'];
const home = commandHome();
const questions = fileURLToPath(new URL('../../examples/data/questions.jsonl', import.meta.url));
const file = (name: string, text: string): string => {
  const path = join(home.folder, name);
  writeFileSync(path, text);
  return path;
};
const ok = async (args: readonly string[], terminal: FakeTerminal = {}): Promise<Ran> => {
  const ran = await run(args, terminal);
  expect(ran.stderr).not.toContain('Error');
  expect(ran.code).toBe(0);
  return ran;
};
const configIn = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;
const stepsIn = (folder: string) =>
  readFileSync(join(folder, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { readonly index: number }).index);

it('a checkpoint of a service that was started again without --data is explained', async () => {
  const gone = 'tinker://4a3e2f1c-0000-4000-8000-000000000000:train:0/sampler_weights/final';
  const why = /there is no checkpoint tinker:.*This service was started without --data/;
  expect((await run(['chat', '-m', gone])).stderr).toMatch(why);
  expect((await run(['checkpoint', 'publish', gone])).stderr).toMatch(why);
  const other = await LocalTinker.start({ apiKey: home.local.apiKey });
  const log = join(home.folder, 'before-restart');
  await ok(['train', questions, ...TINY, '--steps', '1', '--batch-size', '20', '--log', log]);
  const resumed = await run(['--base-url', other.url, 'train', '--resume', log, '--steps', '2']);
  await other.close();
  expect(resumed.stderr).toMatch(why);
  // The same command would fail again.
  expect(resumed.stderr).not.toContain('Continue from');
  const local = await LocalTinker.start({ data: join(home.folder, 'kept'), apiKey: home.local.apiKey });
  const { stderr } = await run(['--base-url', local.url, 'chat', '-m', gone]);
  await local.close();
  expect(stderr).toContain('there is no checkpoint tinker:');
  expect(stderr).not.toContain('--data');
});

describe('sample --file', () => {
  const sample = (...args: string[]) => run(['sample', ...TINY, '--max-tokens', '4', '--temperature', '0', ...args]);

  it.each(['prompt', 'question', 'input'])('takes a CSV file with a column %s, as grpo and eval do', async (column) => {
    const { code, stdout } = await sample('--file', file(`${column}.csv`, `id,${column}\n1,Red?\n2,Blue?\n`));
    expect(stdout.match(/── prompt \d/g)).toHaveLength(2);
    expect(code).toBe(0);
  });

  it('asks once for --column where no column has a known name, and takes it', async () => {
    const rows = file('frage.csv', `id,frage\n${'1,Rot?\n'.repeat(500)}`);
    const { code, stderr } = await sample('--file', rows, '--out', join(home.folder, 'frage.out.jsonl'));
    expect(stderr).toBe(
      `Error: ${rows}: no column of prompts: none of messages, prompt, question, input, text; its columns: id, frage\n` +
        'Say which column holds the prompts: --column <name>.\n',
    );
    expect(code).toBe(2);
    const told = await sample('--file', file('rot.csv', 'id,frage\n1,Rot?\n'), '--column', 'frage');
    expect([told.code, told.stderr]).toStrictEqual([0, '']);
  });

  it('offers --resume only where it can help', async () => {
    const rows = file('half.jsonl', '{"question": "Red?"}\n{"question": 7}\n');
    const { code, stderr } = await sample('--file', rows, '--out', join(home.folder, 'half.out.jsonl'));
    expect(stderr).toMatch(/half\.jsonl:2: .*\n.*1 prompt, 1 failed\.$/m);
    expect(stderr).not.toContain('--resume');
    expect(code).toBe(1);
  });
});

describe('a run folder', () => {
  const log = () => join(home.folder, 't1');
  const greedy = ['--temperature', '0', '--max-tokens', '24'];
  beforeAll(async () => {
    const flags = ['--learning-rate', '1e-2', '--batch-size', '20', '--schedule', 'constant'];
    await ok(['train', questions, ...TINY, ...flags, '--steps', '40', '--checkpoint-every', '20', '--log', log()]);
  });

  it('is a model for chat, by its newest checkpoint or one of a step', async () => {
    const input = 'What is the capital of France?\n';
    expect((await ok(['chat', log(), '--temperature', '0'], { input })).stdout).toBe('Paris\n');
    expect((await ok(['chat', '-m', `${log()}@40`, '--temperature', '0'], { input })).stdout).toBe('Paris\n');
    expect((await run(['chat', `${log()}@30`])).stderr).toContain(
      'has no checkpoint to sample from after step 30\nIt has them after steps 20, 40.',
    );
    expect((await run(['chat'])).stderr).toContain('No model');
    expect((await run(['chat', log(), '-m', log()])).stderr).toContain('Give the model once');
    expect((await run(['chat', './nowhere'])).stderr).toContain('./nowhere holds no run');
  });

  it('is a model for sample', async () => {
    const { stdout } = await ok(['sample', '-m', log(), ...greedy, 'What is the capital of Japan?']);
    expect(stdout).toBe('Tokyo\n');
  });

  it('is a model for eval, which notes the checkpoint', async () => {
    const tasks = file('capitals.jsonl', '{"question": "What is the capital of Egypt?", "answer": "Cairo"}\n');
    const out = join(home.folder, 'capitals.eval.jsonl');
    await ok(['eval', tasks, '-m', log(), '--scorer', 'exact', '--out', out, ...greedy]);
    expect(readFileSync(out, 'utf8')).toMatch(/"model":"tinker:[^"]*sampler_weights/);
  });

  it('is a model for serve', async () => {
    const stop$ = new Subject<void>();
    const { surroundings: around, written } = surroundings({ interrupted$: stop$ });
    const serving = runCli(['--format', 'json', 'serve', log(), '--drain', '0'], around);
    await vi.waitFor(() => expect(JSON.parse(written.stdout)).toMatchObject({ model: log() }), 240_000);
    stop$.next();
    expect(await serving).toBe(0);
  });

  it('is a checkpoint for export, download, and --from', async () => {
    const output = join(home.folder, 'adapter');
    await ok(['checkpoint', 'export', log(), '-o', output]);
    expect(existsSync(join(output, 'adapter_config.json'))).toBe(true);
    await ok(['checkpoint', 'download', `${log()}@20`, '-o', join(home.folder, 'downloads')]);
    // No colon in the name of a folder: Windows has none.
    expect(readdirSync(join(home.folder, 'downloads')).map((name) => name.replace(/^[\w-]+_/, ''))).toStrictEqual([
      'step-000020',
    ]);
    const next = join(home.folder, 't2');
    await ok(['train', questions, '--from', `${log()}@20`, '--steps', '1', '--batch-size', '20', '--log', next]);
    expect(configIn(next)).toMatchObject({
      from: expect.stringMatching(/^tinker:.*\/weights\/step-000020$/) as string,
    });
    expect((await run(['train', questions, '-m', log()])).stderr).toContain('is a run');
  });

  it('is trained further with more steps, or more passes over the data', async () => {
    const path = join(home.folder, 'more');
    const flags = ['--batch-size', '20', '--learning-rate', '1e-2', '--log', path];
    await ok(['train', questions, ...TINY, ...flags, '--steps', '2']);
    const done = await ok(['train', '--resume', path]);
    expect(done.stderr).toContain(`More steps: tinker-rx train --resume ${path} --steps N`);
    await ok(['train', '--resume', path, '--steps', '4']);
    expect(stepsIn(path)).toStrictEqual([0, 1, 2, 3]);
    await ok(['train', '--resume', path, '--epochs', '6']);
    expect(stepsIn(path)).toStrictEqual([0, 1, 2, 3, 4, 5]);
    expect(configIn(path)).not.toHaveProperty('steps');
  });

  it('gives its config.json to --config, where the command line counts more', async () => {
    const path = join(home.folder, 'again');
    await ok(['train', '--config', join(log(), 'config.json'), '--steps', '1', '--log', path]);
    const { steps, ...rest } = configIn(path);
    const { steps: before, ...same } = configIn(log());
    expect([before, steps]).toStrictEqual([40, 1]);
    expect(rest).toStrictEqual(same);
  });

  it('names what is wrong in a file of options', async () => {
    const config = (options: object) => run(['train', '--config', file('wrong.json', JSON.stringify(options))]);
    expect((await config({ lr: 1 })).stderr).toMatch(/wrong\.json: train has no option lr\nIt has data, model, /);
    expect((await config({ rank: 'x' })).stderr).toMatch(/wrong\.json: rank: Expected a whole number/);
    expect((await config({ trainMlp: 'x' })).stderr).toContain('trainMlp must be true or false');
    expect((await config({ command: 'grpo' })).stderr).toContain('is of tinker-rx grpo, not of train');
    expect((await run(['train', '--config', 'nowhere.json'])).stderr).toContain('nowhere.json cannot be read');
  });

  it('gives options to other commands, too', async () => {
    const config = file('ask.json', JSON.stringify({ model: log(), temperature: 0, maxTokens: 24 }));
    expect((await ok(['sample', '--config', config, 'What is the capital of Japan?'])).stdout).toBe('Tokyo\n');
  });

  it('keeps what was piped into train -, so that the run can be resumed', async () => {
    const path = join(home.folder, 'piped');
    const input = readFileSync(questions, 'utf8');
    await ok(['train', '-', ...TINY, '--batch-size', '20', '--steps', '1', '--log', path], { input });
    expect(readFileSync(join(path, 'data.jsonl'), 'utf8')).toBe(input);
    await ok(['train', '--resume', path, '--steps', '2']);
    expect(stepsIn(path)).toStrictEqual([0, 1]);
    const { stderr } = await run(['train', '-', ...TINY, '--dry-run'], { input });
    expect(stderr).toContain('--dry-run needs a file');
  });
});
