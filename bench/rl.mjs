// Synchronous GRPO: a hand-written loop on the client, `reinforce`, and the public cookbook's own loop, on one service in one run.
// Run: npm run build && node bench/rl.mjs      PYTHON=<python with tinker-cookbook and torch> adds the cookbook
//
// All loops get the same tasks, and what is compared is the time for all of them, per batch of tasks. Steps cannot be compared one by
// one: towards the end few groups teach, a loop by hand still counts a step that trains nothing, and `reinforce` waits for groups that teach.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { from, lastValueFrom } from 'rxjs';

const at = (path) => import(new URL(`../dist/${path}`, import.meta.url).href);
const [{ ModelInput, ServiceClient }, { LocalTinker }, { reinforce }] = await Promise.all([
  at('index.js'),
  at('local/index.js'),
  at('rl/index.js'),
]);

const MODEL = 'tinker-rx/tiny';
const STEPS = 20;
const REPEATS = Number(process.env.REPEATS ?? 5);
const RANK = 16;
/** Learns to begin with a letter. */
const LEARNING = { rewardOf: ({ tokens }) => (tokens[0] === LETTER ? 1 : 0), learningRate: 1.5e-3 };
/** Learns nothing: about half of all answers are good, so that nearly every group teaches, and all loops do the same work per step. */
const STANDING = { rewardOf: ({ tokens }) => tokens[0] % 2, learningRate: 1e-9 };
const LETTER = '-'.charCodeAt(0);
const END = 256;
const [USER, ASSISTANT] = [258, 259];
const sampling = { maxTokens: 8, stop: [END] };
const promptOf = (place) => [USER, ...Buffer.from(`Say something, number ${place % 97}.`), END, ASSISTANT];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

const taskBatches = (groups) =>
  Array.from({ length: STEPS }, (_, step) =>
    Array.from({ length: groups }, (_, place) => promptOf(step * groups + place)),
  );

/** What people write by hand: sample, grade, train, take the new weights. */
async function byHand(trainer, groups, group, { rewardOf, learningRate }) {
  let sampler = await trainer.saveWeightsAndGetSamplingClient();
  const rewards = [];
  const begun = performance.now();
  for (const batch of taskBatches(groups)) {
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
    trainer.optimStep({ learningRate, eps: 1e-8 }).catch(() => {});
    sampler = await trainer.saveWeightsAndGetSamplingClient();
  }
  const size = groups * group;
  return {
    seconds: (performance.now() - begun) / 1000 / STEPS,
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
async function streamed(trainer, groups, group, { rewardOf, learningRate }) {
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
  const rewards = [];
  const onEvent = (event) => {
    if (event.type === 'group-finished') rewards[event.order] = mean(event.rewards);
  };
  const adam = { learningRate, eps: 1e-8 };
  const begun = performance.now();
  const steps = reinforce(trainer, agent, { group, groupsPerBatch: groups, adam, onEvent });
  await lastValueFrom(from(taskBatches(groups).flat()).pipe(steps));
  return {
    seconds: (performance.now() - begun) / 1000 / STEPS,
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
        learning_rate: LEARNING.learningRate,
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
    await streamed(await trainer(1), 2, 4, STANDING);
    // In turn, so that whatever else the machine does meets both alike.
    const bothOf = async (task) => {
      const [hand, ours] = [[], []];
      for (let repeat = 0; repeat < REPEATS; repeat++) {
        hand.push(await byHand(await trainer(2), groups, group, task));
        ours.push(await streamed(await trainer(2), groups, group, task));
      }
      return { hand, ours };
    };
    const same = await bothOf(STANDING);
    const { hand, ours } = await bothOf(LEARNING);
    const theirs = python === undefined ? undefined : await cookbook(python, local, groups, group);
    const seconds = (runs) => median(runs.map((run) => run.seconds));
    const end = (runs) => mean(runs.flatMap(({ rewards }) => rewards.slice(-3)));
    const result = { groups, group, hand: seconds(hand), ours: seconds(ours), theirs: theirs && mean(theirs.seconds) };
    const sameWork = seconds(same.ours) / seconds(same.hand);
    console.log(
      `${groups} × ${group}, the same work in every step: by hand ${seconds(same.hand).toFixed(3)} s per batch, ` +
        `reinforce ${seconds(same.ours).toFixed(3)} s, ${(100 * sameWork).toFixed(0)} % of by hand`,
    );
    console.log(
      `${groups} × ${group}: by hand ${result.hand.toFixed(3)} s per batch (reward ${end(hand).toFixed(2)}), ` +
        `reinforce ${result.ours.toFixed(3)} s (${end(ours).toFixed(2)}), ${((100 * result.ours) / result.hand).toFixed(0)} % of by hand` +
        (theirs === undefined
          ? ''
          : `; cookbook ${result.theirs.toFixed(3)} s (${end([theirs]).toFixed(2)}): ${(result.theirs / result.ours).toFixed(1)} times ours`),
    );
    return { ...result, sameWork, better: theirs === undefined || end(ours) >= end([theirs]) - 0.05 };
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
    .flatMap(({ ours, hand, sameWork }) => [ours <= 1.1 * hand, sameWork <= 1.1])
    .concat(faster(small, 4), faster(large, 6), small.better, large.better);
  console.log(bars.every(Boolean) ? 'all bars met' : `a bar was MISSED: ${bars.join(', ')}`);
  process.exitCode = bars.every(Boolean) ? 0 : 1;
}
