// Preferences, where the loss runs here: node test/parity/skyrl/dpo.mjs URL, with `skyrl_server.py --serve` beside it.
// Prints one line a step; exits 1 where the chosen answers do not come out ahead.
import { from, lastValueFrom, map, tap, toArray } from 'rxjs';
import { ModelInput, ServiceClient } from 'tinker-rx';
import { dpo } from 'tinker-rx/losses';
import { batch, repeatEpochs, trainPreferences } from 'tinker-rx/operators';
import { check, failures, say, within } from './report.mjs';
import { fixed, tokensOf } from './texts.mjs';

const [url] = process.argv.slice(2);
if (url === undefined) throw new Error('usage: node test/parity/skyrl/dpo.mjs URL');

const PROMPTS = ['the sea is', 'the grass is', 'the snow is', 'the sun is', 'the night is', 'the rose is'];
/** The answer's tokens have weight 1. */
function datum(prompt, answer) {
  const tokens = tokensOf(`${prompt}${answer}`);
  const weights = Float32Array.from(tokens, (_, place) => (place < prompt.length ? 0 : 1));
  return {
    modelInput: ModelInput.fromInts(tokens.subarray(0, -1)),
    lossFnInputs: { target_tokens: tokens.subarray(1), weights: weights.subarray(1) },
  };
}
const pairs = PROMPTS.map((prompt) => [datum(prompt, ' kind'), datum(prompt, ' cruel')]);

const service = new ServiceClient({ baseUrl: url, apiKey: 'tml-life' });
const { supportedModels } = await within('capabilities', service.getServerCapabilities());
const baseModel = supportedModels[0].modelName;
const trainer = await within('create', service.createLoraTrainingClient({ baseModel, rank: 8, seed: 1 }));
const reference = await within('sampler', service.createSamplingClient({ baseModel }));
const steps = from(pairs).pipe(
  repeatEpochs({ epochs: 10 }),
  batch({ size: 3 }),
  map((batched) => batched.flat()),
  trainPreferences(trainer, { loss: dpo({ beta: 0.1 }), reference, adam: { learningRate: 1e-3 } }),
  tap(({ index, metrics: m }) => {
    say(
      `step ${index + 1}: loss ${fixed(m.dpo_loss)}, accuracy ${fixed(m.accuracy)}, margin ${fixed(m.margin)}, ` +
        `chosen ${fixed(m.chosen_reward)}, rejected ${fixed(m.rejected_reward)}`,
    );
  }),
  toArray(),
);
const all = await within('training', lastValueFrom(steps), 900_000);
const [first, last] = [all[0].metrics, all.at(-1).metrics];
check('the loss starts at log 2', Math.abs(first.dpo_loss - Math.LN2) < 1e-3, fixed(first.dpo_loss));
check(
  'the accuracy rises to 1',
  first.accuracy < 1 && last.accuracy === 1,
  `${fixed(first.accuracy)} → ${fixed(last.accuracy)}`,
);
check('the margin rises', last.margin > first.margin + 0.1, `${fixed(first.margin)} → ${fixed(last.margin)}`);
check('the loss falls', last.dpo_loss < 0.9 * first.dpo_loss, `${fixed(first.dpo_loss)} → ${fixed(last.dpo_loss)}`);
await within('close', service.close(), 60_000);
process.exit(failures() === 0 ? 0 : 1);
