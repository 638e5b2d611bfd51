// Synchronous GRPO: a hand-written loop on the client, `reinforce`, and the public cookbook's own loop, on one service in one run.
// Run: npm run build && node bench/rl.mjs      PYTHON=<python with tinker-cookbook and torch> adds the cookbook
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { from, lastValueFrom, tap, toArray } from 'rxjs';

const at = (path) => import(new URL(`../dist/${path}`, import.meta.url).href);
const [{ ModelInput, ServiceClient }, { LocalTinker }, { reinforce }] = await Promise.all([
  at('index.js'),
  at('local/index.js'),
  at('rl/index.js'),
]);

const MODEL = 'tinker-rx/tiny';
const STEPS = 20;
const RANK = 16;
const LEARNING_RATE = 1.5e-3;
const LETTER = '-'.charCodeAt(0);
const END = 256;
const [USER, ASSISTANT] = [258, 259];
const sampling = { maxTokens: 8, stop: [END] };
const promptOf = (place) => [USER, ...Buffer.from(`Say something, number ${place % 97}.`), END, ASSISTANT];
const rewardOf = ({ tokens }) => (tokens[0] === LETTER ? 1 : 0);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

const taskBatches = (groups) =>
  Array.from({ length: STEPS }, (_, step) =>
    Array.from({ length: groups }, (_, place) => promptOf(step * groups + place)),
  );

/** What people write by hand: sample, grade, train, take the new weights. */
async function byHand(trainer, groups, group) {
  let sampler = await trainer.saveWeightsAndGetSamplingClient();
  const seconds = [];
  const rewards = [];
  for (const batch of taskBatches(groups)) {
    const begun = performance.now();
    const prompts = batch.map((tokens) => ModelInput.fromInts(tokens));
    const answers = await Promise.all(
      prompts.map((prompt) => sampler.sample({ prompt, numSamples: group, samplingParams: sampling })),
    );
    const data = answers.flatMap(({ sequences }, place) => {
      const scores = sequences.map(rewardOf);
      rewards.push(...scores);
      const centre = mean(scores);
      if (scores.every((score) => score === centre)) return [];
      return sequences.map((sequence, index) => datumOf(batch[place], sequence, scores[index] - centre));
    });
    if (data.length > 0) trainer.forwardBackward(data, 'importance_sampling').catch(() => {});
    trainer.optimStep({ learningRate: LEARNING_RATE, eps: 1e-8 }).catch(() => {});
    sampler = await trainer.saveWeightsAndGetSamplingClient();
    seconds.push((performance.now() - begun) / 1000);
  }
  const size = groups * group;
  return {
    seconds: seconds.slice(1),
    rewards: Array.from({ length: STEPS }, (_, i) => mean(rewards.slice(i * size, (i + 1) * size))),
  };
}

function datumOf(prompt, { tokens, logprobs }, advantage) {
  const all = [...prompt, ...tokens];
  const nothing = new Array(prompt.length - 1).fill(0);
  return {
    modelInput: ModelInput.fromInts(all.slice(0, -1)),
    lossFnInputs: {
      target_tokens: all.slice(1),
      logprobs: [...nothing, ...logprobs],
      advantages: [...nothing, ...Array.from(tokens, () => advantage)],
    },
  };
}

/** The same as a stream. */
async function streamed(trainer, groups, group) {
  const agent = Object.assign(
    (tokens, policy) =>
      policy
        .turn(ModelInput.fromInts(tokens), sampling)
        .then((turn) => ({ turns: [turn], reward: rewardOf(turn.sequence) })),
    {
      group: (tokens, policy, { size }) => {
        const turns = policy.sample({
          prompt: ModelInput.fromInts(tokens),
          numSamples: size,
          samplingParams: sampling,
        });
        return Array.from({ length: size }, async (_, index) => {
          const turn = (await turns)[index];
          return { turns: [turn], reward: rewardOf(turn.sequence) };
        });
      },
    },
  );
  const times = [];
  const rewards = [];
  // A batch that teaches nothing is no step here, but it is one by hand: what is measured is a batch of tasks.
  const onEvent = (event) => {
    if (event.type === 'group-finished') rewards[event.order] = mean(event.rewards);
  };
  const adam = { learningRate: LEARNING_RATE, eps: 1e-8 };
  await lastValueFrom(
    from(taskBatches(groups).flat()).pipe(
      reinforce(trainer, agent, { group, groupsPerBatch: groups, adam, onEvent }),
      tap((step) => times.push({ at: performance.now() / 1000, batches: Math.max(1, step.groups.length / groups) })),
      toArray(),
    ),
  );
  return {
    seconds: times.slice(1).map(({ at, batches }, index) => (at - times[index].at) / batches),
    rewards: Array.from({ length: STEPS }, (_, batch) => mean(rewards.slice(batch * groups, (batch + 1) * groups))),
  };
}

async function cookbook(python, local, groups, group) {
  const folder = await mkdtemp(join(tmpdir(), 'cookbook-rl-'));
  try {
    const job = join(folder, 'job.json');
    await writeFile(
      job,
      JSON.stringify({
        model: MODEL,
        log: join(folder, 'log'),
        learning_rate: LEARNING_RATE,
        rank: RANK,
        max_tokens: sampling.maxTokens,
        stop: sampling.stop,
        letter: LETTER,
        group,
        prompts: taskBatches(groups),
      }),
    );
    const script = fileURLToPath(new URL('support/cookbook_rl.py', import.meta.url));
    const env = { ...process.env, TINKER_API_KEY: local.apiKey, TINKER_BASE_URL: local.url, TINKER_TELEMETRY: '0' };
    const { stdout } = await promisify(execFile)(python, [script, job], { env, maxBuffer: 1 << 26 });
    return JSON.parse(stdout.trim().split('\n').at(-1));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Each shape on a service of its own, the three loops one after the other. */
async function shape(groups, group, python) {
  const local = await LocalTinker.start();
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  const trainer = (seed) => service.createLoraTrainingClient({ baseModel: MODEL, rank: RANK, seed });
  try {
    // The first steps compile, whoever takes them.
    await streamed(await trainer(1), 2, 4);
    const hand = await byHand(await trainer(2), groups, group);
    const ours = await streamed(await trainer(2), groups, group);
    const again = await byHand(await trainer(2), groups, group);
    const handSeconds = Math.min(median(hand.seconds), median(again.seconds));
    const theirs = python === undefined ? undefined : await cookbook(python, local, groups, group);
    const result = {
      groups,
      group,
      hand: handSeconds,
      ours: median(ours.seconds),
      theirs: theirs && median(theirs.seconds),
    };
    const end = (rewards) => mean(rewards.slice(-3)).toFixed(2);
    console.log(
      `${groups} × ${group}: by hand ${result.hand.toFixed(3)} s per step (reward ${end(hand.rewards)}), reinforce ${result.ours.toFixed(3)} s (${end(ours.rewards)}), ` +
        `${((100 * result.ours) / result.hand).toFixed(0)} % of by hand` +
        (theirs === undefined
          ? ''
          : `; cookbook ${result.theirs.toFixed(3)} s (${end(theirs.rewards)}): ${(result.theirs / result.ours).toFixed(1)} times ours`),
    );
    return {
      ...result,
      better: theirs === undefined || mean(ours.rewards.slice(-3)) >= mean(theirs.rewards.slice(-3)) - 0.05,
    };
  } finally {
    await service.close();
    await local.close();
  }
}

/** The bars: within 10 % of a hand-written loop; 4 and 6 times the cookbook's steps per second, reward no lower. */
export async function benchRl({ python = process.env.PYTHON } = {}) {
  const small = await shape(8, 16, python);
  const large = await shape(32, 16, python);
  return { small, large };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { small, large } = await benchRl();
  const faster = ({ ours, theirs }, times) => theirs === undefined || theirs / ours >= times;
  const bars = [small, large]
    .map(({ ours, hand }) => ours <= 1.1 * hand)
    .concat(faster(small, 4), faster(large, 6), small.better, large.better);
  console.log(bars.every(Boolean) ? 'all bars met' : `a bar was MISSED: ${bars.join(', ')}`);
  process.exitCode = bars.every(Boolean) ? 0 : 1;
}
