/** What `train` and `sample` do with their data, against the embedded service over real sockets. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { commandHome } from './support/commandHome.js';
import { run, type Ran } from '../unit/cli/terminal.js';

const QUESTIONS = fileURLToPath(new URL('../../examples/data/questions.jsonl', import.meta.url));
const home = commandHome();

const ok = async (args: readonly string[]): Promise<Ran> => {
  const ran = await run(args);
  expect(ran.stderr).not.toContain('Error');
  expect(ran.code).toBe(0);
  return ran;
};
const lines = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { evaluations?: { index: number; metrics: object }[] });

describe('train', () => {
  const rowsIn = (name: string, ...rows: unknown[]): string => {
    const path = join(home.folder, name);
    writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return path;
  };
  const asked = { messages: [{ role: 'user', content: 'Hello?' }] };
  const answered = { messages: [...asked.messages, { role: 'assistant', content: 'Hello!' }] };

  it.each([[], ['--steps', '3']])('fails where nothing can be trained: %j', async (...flags) => {
    const data = rowsIn('unanswered.jsonl', ...Array.from({ length: 200 }, () => asked));
    const path = join(home.folder, 'nothing');
    const { code, stderr } = await run(['train', data, '-m', 'tinker-rx/tiny', '--rank', '4', ...flags, '--log', path]);
    expect(stderr).toContain('nothing to train: no token of the 200 conversations carries loss');
    expect(code).toBe(1);
    expect(existsSync(join(path, 'checkpoints.jsonl'))).toBe(false);
  });

  it.each([
    ['empty.jsonl', 'empty.jsonl holds no conversations'],
    ['bad.jsonl', 'bad.jsonl holds no conversations, 2 bad rows skipped'],
  ])('with --steps is no success where %s has no row', async (name, message) => {
    const data = name === 'bad.jsonl' ? rowsIn(name, { a: 1 }, []) : rowsIn(name);
    const flags = ['-m', 'tinker-rx/tiny', '--rank', '4', '--steps', '2', '--skip-bad-rows'];
    const { code, stderr, stdout } = await run(['train', data, ...flags, '--log', join(home.folder, `none-${name}`)]);
    expect(stderr).toContain(message);
    expect(stderr + stdout).not.toContain('finished');
    expect(code).toBe(1);
  });

  it.each([[], ['--steps', '1']])(
    'counts rows with nothing to train and bad rows, and names fields: %j',
    async (...flags) => {
      const typo = { messages: [{ role: 'usr', content: 'Hello?' }, answered.messages[1]] };
      const data = rowsIn('mixed.jsonl', { id: 1, ...answered }, asked, typo);
      const command = ['train', data, '-m', 'tinker-rx/tiny', '--rank', '4', ...flags];
      const refused = await run([...command, '--log', join(home.folder, `refused${flags.length}`)]);
      expect(refused.stderr).toContain(`Error: ${data}:3: tinker_rx_bytes has no role 'usr'`);
      const { stderr } = await ok([...command, '--skip-bad-rows', '--log', join(home.folder, `mixed${flags.length}`)]);
      expect(stderr).toContain('1 bad row skipped, 1 row with nothing to train left out');
      expect(stderr).toContain('mixed.jsonl: fields that are not used: id (1 row)');
    },
  );

  it('warns of a run that diverges, of fewer rows than a batch, and of --epochs beside --steps', async () => {
    const data = rowsIn('few.jsonl', ...Array.from({ length: 5 }, () => answered));
    const flags = ['-m', 'tinker-rx/tiny', '--rank', '4', '--learning-rate', '1000', '--steps', '4', '--epochs', '2'];
    const { stderr } = await run(['train', data, ...flags, '--log', join(home.folder, 'diverged')]);
    expect(stderr).toMatch(/Warning: after \d steps, the loss is .* may have diverged\. Lower the learning rate/);
    expect(stderr).toContain('Warning: 5 examples do not fill a batch of 128');
    expect(stderr).toContain('Warning: --steps 4 counts; --epochs 2 does not');
    const sound = await ok([
      'train',
      data,
      ...flags.slice(0, 4),
      '--batch-size',
      '5',
      '--log',
      join(home.folder, 'sound'),
    ]);
    expect(sound.stderr).not.toContain('Warning');
  });

  it('trains what the flags leave of LoRA, and saves them with the run', async () => {
    const data = rowsIn('part.jsonl', answered);
    const log = join(home.folder, 'part');
    const flags = ['-m', 'tinker-rx/tiny', '--rank', '4', '--no-train-unembed', '--no-train-attn', '--batch-size', '1'];
    const { stdout } = await ok(['train', data, ...flags, '--log', log, '--format', 'json']);
    expect(JSON.parse(readFileSync(join(log, 'config.json'), 'utf8'))).toMatchObject({
      trainMlp: true,
      trainAttn: false,
      trainUnembed: false,
    });
    const { state_path: path } = JSON.parse(stdout) as { state_path: string };
    const output = join(home.folder, 'part-adapter');
    const exported = await ok(['checkpoint', 'export', path, '-o', output, '--format', 'json']);
    const { target_modules: modules } = JSON.parse(exported.stdout) as { target_modules: string[] };
    expect(modules.length).toBeGreaterThan(0);
    expect(modules).not.toContain('lm_head');
    expect(modules).not.toContain('q_proj');
    expect(exported.stderr).not.toContain('output matrix');
  });

  it('shows the loss on held-out data beside that of training', async () => {
    const held = rowsIn('held.jsonl', answered, asked);
    const path = join(home.folder, 'validated');
    const flags = [
      '-m',
      'tinker-rx/tiny',
      '--rank',
      '4',
      '--batch-size',
      '5',
      '--validation',
      held,
      '--validate-every',
      '3',
    ];
    const { stdout, stderr } = await ok(['train', QUESTIONS, ...flags, '--log', path]);
    expect(stderr).toContain('held.jsonl: 1 example, 15 tokens, 1 row with nothing to train left out');
    expect(stdout).toMatch(/^Validation loss +\d+\.\d{4}$/m);
    const evaluations = lines(join(path, 'metrics.jsonl')).flatMap(({ evaluations: found = [] }) => found);
    expect(evaluations).toMatchObject([
      { index: 2, metrics: { validation_loss: expect.any(Number) as number } },
      { index: 3, metrics: { validation_loss: expect.any(Number) as number } },
    ]);
    expect((await run(['train', '--resume', path, '--validation', held])).stderr).toContain('keeps its validation');
    expect((await ok(['train', '--resume', path])).stderr).toContain('The run was finished already');
  });

  it('stops, and saves, when the loss on held-out data no longer improves', async () => {
    const held = rowsIn('stale.jsonl', answered);
    const path = join(home.folder, 'stale');
    const flags = [
      '-m',
      'tinker-rx/tiny',
      '--rank',
      '4',
      '--batch-size',
      '5',
      '--epochs',
      '10',
      '--learning-rate',
      '0',
    ];
    const early = ['--validation', held, '--validate-every', '1', '--early-stop', '2'];
    const { stderr } = await ok(['train', QUESTIONS, ...flags, ...early, '--log', path]);
    expect(stderr).toContain('Fewer steps than there could be: the validation loss did not improve 2 times in a row.');
    const steps = lines(join(path, 'metrics.jsonl'));
    expect(steps.length).toBeLessThan(40);
    expect(existsSync(join(path, 'checkpoints.jsonl'))).toBe(true);
    const refused = await run(['train', QUESTIONS, '-m', 'tinker-rx/tiny', '--early-stop']);
    expect(refused.stderr).toContain('--early-stop without --validation');
    expect(refused.code).toBe(2);
  });
});

describe('sample', () => {
  const ask = ['sample', '-m', 'tinker-rx/tiny', '--temperature', '0', '--max-tokens', '4'];
  const inFile = (name: string, ...rows: string[]): string => {
    const path = join(home.folder, name);
    writeFileSync(path, rows.map((row) => `${row}\n`).join(''));
    return path;
  };
  const results = (path: string) =>
    readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { index: number; prompt: unknown; samples: { text: string }[] });

  it('is not stopped by a bad line, and names file and line', async () => {
    const typo = '{"messages":[{"role":"usr","content":"c"}]}';
    const file = inFile('some.jsonl', 'a', '{"prompt":', typo, 'd');
    const { code, stdout, stderr } = await run([...ask, '--file', file, '-f', 'json']);
    expect(code).toBe(1);
    expect(stderr).toContain(`Error: ${file}:2: not JSON`);
    expect(stderr).toContain(`Error: ${file}:3: tinker_rx_bytes has no role 'usr'`);
    const indexes = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { index: number }).index);
    expect(indexes.sort()).toStrictEqual([0, 3]);
    const skipping = await run([...ask, '--file', file, '--skip-bad-rows']);
    expect(skipping.code).toBe(0);
    expect(skipping.stderr).toContain(`Skipped: ${file}:2: not JSON`);
  });

  it('resumes what --out holds, whatever was half written', async () => {
    const file = inFile('all.txt', 'one', 'two', 'three', 'four');
    const out = join(home.folder, 'out', 'samples.jsonl');
    const whole = await ok([...ask, '--file', file, '--out', out]);
    expect(whole.stdout).toBe('');
    expect(whole.stderr).toContain(`${out}: 4 prompts`);
    const before = results(out);
    expect(before.map(({ index }) => index).sort()).toStrictEqual([0, 1, 2, 3]);

    const refused = await run([...ask, '--file', file, '--out', out]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('exists already');

    // Two of them, and the first half of a third.
    const text = readFileSync(out, 'utf8').split('\n');
    writeFileSync(out, `${text[0]}\n${text[1]}\n${text[2]!.slice(0, 20)}`);
    const resumed = await ok([...ask, '--file', file, '--out', out, '--resume']);
    expect(resumed.stderr).toContain('2 prompts done already');
    const byIndex = (one: { index: number }, other: { index: number }) => one.index - other.index;
    expect(results(out).sort(byIndex)).toStrictEqual(before.sort(byIndex));

    const other = inFile('other.txt', 'uno', 'dos', 'tres', 'cuatro');
    const mixed = await run([...ask, '--file', other, '--out', out, '--resume']);
    expect(mixed.stderr).toContain('has the samples of other prompts');
    expect(mixed.code).toBe(1);
    expect((await run([...ask, 'hi', '--resume'])).code).toBe(2);
  });

  it('of a file without a prompt is no success', async () => {
    const file = inFile('blank.txt', '', ' ');
    const { code, stderr } = await run([...ask, '--file', file]);
    expect(stderr).toContain(`Error: ${file} holds no prompts`);
    expect(code).toBe(1);
  });

  it('declares the tools of a row', async () => {
    const tools = [{ name: 'add', description: 'Adds.', parameters: {} }];
    const row = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], tools });
    const [plain, declared] = [
      inFile('plain.jsonl', JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] })),
      inFile('tools.jsonl', row),
    ];
    const first = await ok([...ask, '--file', plain, '-f', 'json', '--logprobs']);
    const second = await ok([...ask, '--file', declared, '-f', 'json', '--logprobs']);
    const logprobs = (text: string) => (JSON.parse(text) as { samples: { logprobs: number[] }[] }).samples[0]!.logprobs;
    expect(logprobs(second.stdout)).not.toStrictEqual(logprobs(first.stdout));
  });
});
