// Cycles per step of custom losses on a lock-step clock, and DPO beside the public cookbook's own loop, in one run.
// Run: npm run build && node bench/losses.mjs      PYTHON=<python with tinker-cookbook and torch> adds the cookbook
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { from, lastValueFrom, take, tap, toArray } from 'rxjs';

const at = (path) => import(new URL(`../dist/${path}`, import.meta.url).href);
const [{ ModelInput, ServiceClient }, { LocalTinker }, { defineLoss, dpo }, { train, trainPreferences }] =
  await Promise.all([at('index.js'), at('local/index.js'), at('losses/index.js'), at('operators/index.js')]);

const STEPS = 50;
// Long beside what a step takes here: what is counted is who was ready when a cycle began. The hosted service's take ten seconds.
const CLOCK_MS = Number(process.env.CLOCK_MS ?? 500);
const PAIRS = 4;
const LEARNING_RATE = 1e-3;
const BETA = 0.1;

/** Sequences of bytes with weights on their second half: chosen and rejected in turn. */
const batches = Array.from({ length: STEPS }, (_, step) =>
  Array.from({ length: 2 * PAIRS }, (_, place) => {
    const text = place % 2 === 0 ? 'Say something kind: thank you' : 'Say something kind: go away';
    const tokens = [...Buffer.from(`${text} ${(step * PAIRS + (place >> 1)) % 10}`)];
    return { tokens, weights: tokens.map((_, i) => (i > 19 ? 1 : 0)) };
  }),
);
const datum = ({ tokens, weights }) => ({
  modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
  lossFnInputs: { target_tokens: tokens.slice(1), weights: weights.slice(1) },
});
const data = () => from(batches.map((batch) => batch.map(datum)));
const adam = { learningRate: LEARNING_RATE, eps: 1e-8 };

/** Cycles per step over all steps but the first, which nothing comes before. */
const cyclesOf = (steps) => {
  const counted = steps.slice(1).map(({ cycles }) => cycles);
  return counted.reduce((sum, cycles) => sum + cycles, 0) / counted.length;
};

const focal = defineLoss(({ logprobs, weights }, ops) =>
  ops.weightedSum(ops.sub(1, logprobs.exp()).square().mul(logprobs), weights).neg(),
);
/** The same in closed form, as a function that runs here. */
const closed = (given, logprobs) => ({
  loss: 0,
  gradients: logprobs.map((row, place) => {
    const weights = given[place].lossFnInputs.weights.data;
    return row.map((value, i) => {
      const p = Math.exp(value);
      return -weights[i] * ((1 - p) ** 2 - 2 * p * (1 - p) * value);
    });
  }),
});

async function on(flags, run) {
  const local = await LocalTinker.start({ clockMs: CLOCK_MS, flags });
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  try {
    // The first steps compile, whoever takes them.
    const first = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4 });
    await lastValueFrom(data().pipe(take(3), train(first, { loss: 'cross_entropy', adam })));
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4 });
    return await run({ local, service, trainer });
  } finally {
    await service.close();
    await local.close();
  }
}
const trained = (loss, flags) =>
  on(flags, ({ trainer }) => lastValueFrom(data().pipe(train(trainer, { loss, adam }), toArray())));

async function preferences() {
  return on({}, async ({ service, trainer }) => {
    const reference = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    const times = [];
    const steps = await lastValueFrom(
      data().pipe(
        trainPreferences(trainer, { loss: dpo({ beta: BETA }), reference, adam }),
        tap(() => times.push(performance.now())),
        toArray(),
      ),
    );
    return { steps, perSecond: (1000 * (times.length - 1)) / (times.at(-1) - times[0]) };
  });
}

async function cookbook(python) {
  const folder = await mkdtemp(join(tmpdir(), 'cookbook-dpo-'));
  try {
    return await on({}, async ({ local }) => {
      const job = join(folder, 'job.json');
      await writeFile(
        job,
        JSON.stringify({
          base_url: local.url,
          model: 'tinker-rx/tiny',
          log: join(folder, 'log'),
          learning_rate: LEARNING_RATE,
          beta: BETA,
          batches,
        }),
      );
      const script = fileURLToPath(new URL('support/cookbook_dpo.py', import.meta.url));
      const env = { ...process.env, TINKER_API_KEY: local.apiKey, TINKER_BASE_URL: local.url, TINKER_TELEMETRY: '0' };
      const { stdout } = await promisify(execFile)(python, [script, job], { env, maxBuffer: 1 << 26 });
      return JSON.parse(stdout.trim().split('\n').at(-1));
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The bars: cycles per step at most, and steps per second beside the cookbook's at least. */
export async function benchLosses({ python = process.env.PYTHON } = {}) {
  const onService = cyclesOf(await trained(focal, { customLossServerSide: true }));
  console.log(`traced loss, on the service      ${onService.toFixed(3)} cycles per step`);
  const here = cyclesOf(await trained(focal, {}));
  console.log(`traced loss, evaluated here      ${here.toFixed(3)} cycles per step`);
  const inClosedForm = cyclesOf(await trained(closed, {}));
  console.log(`a function in closed form        ${inClosedForm.toFixed(3)} cycles per step`);
  const { steps, perSecond: ours } = await preferences();
  const pairs = cyclesOf(steps);
  console.log(`DPO                              ${pairs.toFixed(3)} cycles per step`);
  const result = { onService, here, inClosedForm, pairs };
  if (python === undefined) return result;
  const theirs = await cookbook(python);
  const rate = theirs.steps / theirs.seconds;
  console.log(`DPO of the cookbook              ${(1000 / CLOCK_MS / rate).toFixed(3)} cycles per step`);
  console.log(
    `steps per second                 ${ours.toFixed(2)}, the cookbook ${rate.toFixed(2)}: ${(ours / rate).toFixed(2)} times`,
  );
  return { ...result, ratio: ours / rate, losses: { ours: steps.map(({ loss }) => loss), theirs: theirs.losses } };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { onService, here, inClosedForm, pairs, ratio, losses } = await benchLosses();
  const bars = [onService <= 1.05, here <= 2, inClosedForm <= 2, pairs <= 1.1, ratio === undefined || ratio >= 2.5];
  if (losses !== undefined) {
    const apart = Math.max(...losses.ours.map((loss, step) => Math.abs(loss - losses.theirs[step])));
    console.log(`losses of the two runs           at most ${apart.toExponential(1)} apart`);
  }
  console.log(bars.every(Boolean) ? 'all bars met' : 'a bar was MISSED');
  process.exitCode = bars.every(Boolean) ? 0 : 1;
}
