/** `tinker-rx dpo` and `tinker-rx distill` against the embedded service. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ModelInput, ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import type { Step } from 'tinker-rx/operators';
import { runCli } from '../../src/cli/program.js';
import { run, surroundings } from '../unit/cli/terminal.js';

let folder: string;
let local: LocalTinker;
/** Weights that were trained a little, to start from and to sample from. */
let start: { readonly state: string; readonly sampler: string };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-preferences-'));
  local = await LocalTinker.start();
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  vi.stubEnv('TINKER_BASE_URL', local.url);
  const service = new ServiceClient({ telemetry: false });
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
  const renderer = await trainer.getRenderer();
  const { modelInput } = renderer.buildSupervisedExample([
    { role: 'user', content: 'What color is the sky?' },
    { role: 'assistant', content: 'blue' },
  ]);
  const tokens = [...modelInput.toInts()];
  const datum = {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
  for (let step = 0; step < 20; step++) {
    trainer.forwardBackward([datum], 'cross_entropy');
    trainer.optimStep({ learningRate: 1e-2 });
  }
  const [state, sampler] = [trainer.saveState('start'), trainer.saveWeightsForSampler('start')];
  start = { state: (await state).path, sampler: (await sampler).path };
  await service.close();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await local.close();
  rmSync(folder, { recursive: true });
});

const metricsOf = (log: string) =>
  readFileSync(join(log, 'metrics.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Step);

describe('dpo', () => {
  const pairs = () => {
    const path = join(folder, 'pairs.jsonl');
    const rows = Array.from({ length: 24 }, (_, row) => ({ prompt: `${row}?`, chosen: `Yes ${row}`, rejected: `No` }));
    writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return path;
  };
  const args = (log: string) => [
    ...['dpo', pairs(), '--from', start.state, '--log', log, '--batch-size', '2', '--epochs', '2'],
    ...['--learning-rate', '0.01', '--checkpoint-every', '4'],
  ];

  it('learns, keeps its reference in the log, and does the same after Ctrl-C and --resume', async () => {
    const whole = join(folder, 'whole');
    const { code, stdout } = await run(args(whole));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Steps +24\nLoss +[\d.]+\nAccuracy +1\.0000\nMargin +[\d.]+\n/);
    const expected = metricsOf(whole);
    expect(expected[0]!.loss).toBeCloseTo(Math.LN2, 4);
    const { reference } = JSON.parse(readFileSync(join(whole, 'config.json'), 'utf8')) as { reference: string };
    expect(reference).toMatch(/^tinker:\/\/.+\/sampler_weights\/reference$/);

    const stopped = join(folder, 'stopped');
    const interrupted$ = new Subject<void>();
    const { surroundings: around, written } = surroundings({ interrupted$ });
    const ended = runCli(args(stopped), around);
    await vi.waitFor(() => expect(metricsOf(stopped).length).toBeGreaterThan(5), { timeout: 240_000, interval: 5 });
    interrupted$.next();
    expect(await ended).toBe(130);
    expect(written.stderr).toMatch(
      /Stopped; saved after step \d+\. Continue with: tinker-rx dpo --resume \S+stopped\n$/,
    );
    expect(metricsOf(stopped).length).toBeLessThan(expected.length);
    expect((await run(['dpo', '--resume', stopped])).code).toBe(0);
    const again = metricsOf(stopped);
    expect(again.map(({ index, loss }) => [index, loss])).toEqual(expected.map(({ index, loss }) => [index, loss]));
  });

  it.each<[string, readonly string[], RegExp]>([
    ['no data', [], /No data/],
    ['no model', ['DATA'], /No model/],
    ['both', ['DATA', '-m', 'x', '--from', 'tinker://x/weights/y'], /Cannot specify both/],
    ['a missing file', ['missing.jsonl', '-m', 'x'], /missing\.jsonl: no such file/],
    ['a folder without a run', ['--resume', 'nowhere'], /nowhere holds no run/],
    ['options of a resumed run', ['--resume', 'nowhere', '--beta', '1'], /A resumed run keeps its beta/],
  ])('refuses %s before anything is sent', async (_, given, message) => {
    const { code, stderr } = await run(['dpo', ...given.map((each) => (each === 'DATA' ? pairs() : each))]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(message);
  });
});

describe('distill', () => {
  it('brings a model nearer to its teacher', async () => {
    const prompts = join(folder, 'prompts.txt');
    writeFileSync(prompts, 'What color is the sky?\n');
    const log = join(folder, 'distilled');
    const { code, stdout } = await run([
      ...['distill', prompts, '-m', 'tinker-rx/tiny', '--teacher', start.sampler, '--log', log, '--rank', '8'],
      ...[
        '--groups-per-batch',
        '1',
        '--group',
        '16',
        '--steps',
        '16',
        '--max-tokens',
        '16',
        '--learning-rate',
        '0.005',
      ],
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Steps +16\nTeacher KL +-?[\d.]+\n/);
    const apart = metricsOf(log).map(({ metrics }) => metrics['env/all/teacher_kl']!);
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(mean(apart.slice(-4))).toBeLessThan(mean(apart.slice(0, 4)) / 2);
  });

  it('wants a teacher', async () => {
    const { code, stderr } = await run(['distill', join(folder, 'pairs.jsonl'), '-m', 'tinker-rx/tiny']);
    expect(code).toBe(2);
    expect(stderr).toContain('No teacher');
  });
});
