/** What `train` says of its data, against the embedded service over real sockets. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';
import { run, type Ran } from '../unit/cli/terminal.js';

const QUESTIONS = fileURLToPath(new URL('../../examples/data/questions.jsonl', import.meta.url));
let folder: string;
let local: LocalTinker;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-cli-'));
  local = await LocalTinker.start();
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  vi.stubEnv('TINKER_LOG', '');
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('HOME', folder);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await local.close();
  rmSync(folder, { recursive: true });
});

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
    const path = join(folder, name);
    writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return path;
  };
  const asked = { messages: [{ role: 'user', content: 'Hello?' }] };
  const answered = { messages: [...asked.messages, { role: 'assistant', content: 'Hello!' }] };

  it.each([[], ['--steps', '3']])('fails where nothing can be trained: %j', { timeout: 60_000 }, async (...flags) => {
    const data = rowsIn('unanswered.jsonl', ...Array.from({ length: 200 }, () => asked));
    const path = join(folder, 'nothing');
    const { code, stderr } = await run(['train', data, '-m', 'tinker-rx/tiny', '--rank', '4', ...flags, '--log', path]);
    expect(stderr).toContain('nothing to train: no token of the 200 conversations carries loss');
    expect(code).toBe(1);
    expect(existsSync(join(path, 'checkpoints.jsonl'))).toBe(false);
  });

  it.each([[], ['--steps', '1']])(
    'counts rows with nothing to train and bad rows, and names fields: %j',
    { timeout: 60_000 },
    async (...flags) => {
      const typo = { messages: [{ role: 'usr', content: 'Hello?' }, answered.messages[1]] };
      const data = rowsIn('mixed.jsonl', { id: 1, ...answered }, asked, typo);
      const command = ['train', data, '-m', 'tinker-rx/tiny', '--rank', '4', ...flags];
      const refused = await run([...command, '--log', join(folder, `refused${flags.length}`)]);
      expect(refused.stderr).toContain(`Error: ${data}:3: tinker_rx_bytes has no role 'usr'`);
      const { stderr } = await ok([...command, '--skip-bad-rows', '--log', join(folder, `mixed${flags.length}`)]);
      expect(stderr).toContain('1 bad row skipped, 1 row with nothing to train left out');
      expect(stderr).toContain('mixed.jsonl: fields that are not used: id (1 row)');
    },
  );

  it('shows the loss on held-out data beside that of training', { timeout: 60_000 }, async () => {
    const held = rowsIn('held.jsonl', answered, asked);
    const path = join(folder, 'validated');
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
});
