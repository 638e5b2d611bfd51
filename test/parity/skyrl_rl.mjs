// Reinforcement learning against a real SkyRL server: python3 test/parity/skyrl_server.py --life skyrl_rl.mjs
// The same program on the embedded service: node test/parity/skyrl_rl.mjs
// Prints the reward of every step; exits 1 where it does not rise, or sampler and trainer disagree.
import { lastValueFrom, tap, toArray } from 'rxjs';
import { ModelInput, ServiceClient } from 'tinker-rx';
import { repeatEpochs } from 'tinker-rx/operators';
import { reinforce } from 'tinker-rx/rl';
import { fromArray } from 'tinker-rx/sources';
import { check, failures, say, within } from './skyrl/report.mjs';

const STEPS = 15;
const SAMPLING = { maxTokens: 8 };
const [url] = process.argv.slice(2);
const local = url === undefined ? await (await import('tinker-rx/local')).LocalTinker.start() : undefined;
const service = new ServiceClient({ baseUrl: url ?? local.url, apiKey: local?.apiKey ?? 'tml-life' });

const isLetter = (token) => token >= 97 && token <= 122;

const promptOf = (task) => ModelInput.fromInts(Array.from(Buffer.from(task)));
/** The more of an answer is small letters, the better it is. */
const rolloutOf = (turn) => {
  const { tokens } = turn.sequence;
  return { turns: [turn], reward: tokens.filter(isLetter).length / Math.max(1, tokens.length) };
};
/** A whole group in one request. */
const agent = Object.assign(async (task, policy) => rolloutOf(await policy.turn(promptOf(task), SAMPLING)), {
  group: (task, policy, { size }) => {
    const turns = policy.sample({ prompt: promptOf(task), numSamples: size, samplingParams: SAMPLING });
    return Array.from({ length: size }, async (_, index) => rolloutOf((await turns)[index]));
  },
});

async function learn() {
  const { supportedModels } = await within('capabilities', service.getServerCapabilities());
  const baseModel = supportedModels[0].modelName;
  const trainer = await within('create', service.createLoraTrainingClient({ baseModel, rank: 8, seed: 1 }));
  const events = [];
  const steps = await within(
    'reinforce',
    lastValueFrom(
      fromArray(['the sea', 'a tree.', 'one two', 'my cats']).pipe(
        repeatEpochs({ epochs: STEPS }),
        reinforce(trainer, agent, {
          group: 16,
          groupsPerBatch: 4,
          adam: { learningRate: 2e-2 },
          onEvent: (event) => events.push(event),
        }),
        tap(({ index, reward, metrics }) =>
          say(
            `       step ${index + 1}: reward ${reward.toFixed(3)}, kl ${metrics['optim/kl_sample_train_v1'].toFixed(5)}, ` +
              `entropy ${metrics['optim/entropy'].toFixed(2)}, age ${metrics['policy/age_max']}`,
          ),
        ),
        toArray(),
      ),
    ),
    3_000_000,
  );
  const mean = (some) => some.reduce((sum, { reward }) => sum + reward, 0) / some.length;
  const [first, last] = [mean(steps.slice(0, 3)), mean(steps.slice(-3))];
  check(
    `${baseModel}: the reward rises in ${STEPS} steps`,
    last > first + 0.2,
    `${first.toFixed(3)} → ${last.toFixed(3)}`,
  );
  check(
    'every step is on policy',
    steps.every(({ metrics }) => metrics['policy/age_max'] === 0),
  );
  const warnings = events.flatMap((event) => (event.type === 'rl-warning' ? [event.message] : []));
  check('sampler and trainer agree on the first batch', warnings.length === 0, warnings.join('; '));
  check(
    'no rollout failed',
    events.every(({ type }) => type !== 'rollout-failed'),
  );
}

try {
  await learn();
} catch (error) {
  check('learned to the end', false, error instanceof Error ? error.stack : String(error));
}
await (failures() === 0 ? service.close() : service.destroy());
await local?.close();
say(failures() === 0 ? 'every check held' : `${failures()} checks failed`);
process.exit(failures() === 0 ? 0 : 1);
