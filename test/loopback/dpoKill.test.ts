import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ServiceClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import type { Step } from '../../src/operators/index.js';
import { ModelInput } from '../../src/wire/modelInput.js';

const PAIRS = 24;
let folder: string;
let script: string;
let data: string;
let start: string;
let local: LocalTinker;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dpo-kill-'));
  script = join(folder, 'child.mjs');
  data = join(folder, 'pairs.jsonl');
  const rows = Array.from({ length: PAIRS }, (_, row) => ({
    prompt: `Is it ${row}?`,
    chosen: `Yes, ${row}.`,
    rejected: `No, ${row + 1}.`,
  }));
  writeFileSync(data, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const bundle = await rolldown({
    input: fileURLToPath(new URL('dpoKillChild.ts', import.meta.url)),
    platform: 'node',
    logLevel: 'silent',
  });
  await bundle.write({ file: script, format: 'esm', codeSplitting: false });
  await bundle.close();
  local = await LocalTinker.start();
  start = await trainedALittle();
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

/** Weights that are not the base model's, so that a reference taken from the wrong ones would show. */
async function trainedALittle(): Promise<string> {
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
  const tokens = Array.from(Buffer.from('Yes and no.'));
  const datum = {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
  for (let step = 0; step < 3; step++) {
    trainer.forwardBackward([datum], 'cross_entropy');
    trainer.optimStep({ learningRate: 1e-2 });
  }
  const { path } = await trainer.saveState('start');
  await service.close();
  return path;
}

/** Runs the child until it is done, or kills it after it said so many steps. Gives whether it was done. */
function run(dir: string, killAfterSteps = Infinity): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, local.url, local.apiKey, data, dir, start], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let steps = 0;
    child.stdout.on('data', (text: Buffer) => {
      steps += text.toString().split('\n').length - 1;
      if (steps >= killAfterSteps) child.kill('SIGKILL');
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve(code === 0);
      else reject(new Error(`the child ended with ${code}`));
    });
  });
}

const curve = (dir: string) =>
  readFileSync(join(dir, 'metrics.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Step)
    .map(({ index, loss, metrics: { dpo_loss, accuracy, margin, chosen_reward, rejected_reward } }) => ({
      ...{ index, loss, dpo_loss, accuracy, margin, chosen_reward, rejected_reward },
    }));

it('DPO, killed and resumed, has the reference and the losses of a run that never was', async () => {
  const whole = join(folder, 'whole');
  expect(await run(whole)).toBe(true);
  const expected = curve(whole);
  expect(expected).toHaveLength(PAIRS / 2);
  // At the start the model is its reference: the loss is log 2. Only there.
  expect(expected[0]!.loss).toBeCloseTo(Math.LN2, 4);
  for (const { loss } of expected.slice(2)) expect(Math.abs(loss - Math.LN2)).toBeGreaterThan(1e-3);
  expect(expected.at(-1)).toMatchObject({ accuracy: 1 });
  expect(expected.at(-1)!.margin).toBeGreaterThan(expected[1]!.margin!);

  const killed = join(folder, 'killed');
  for (const afterSteps of [1, 4, 5]) expect(await run(killed, afterSteps)).toBe(false);
  expect(await run(killed)).toBe(true);
  expect(curve(killed)).toStrictEqual(expected);
});
