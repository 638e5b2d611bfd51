import { ModelInput } from '../wire/index.js';
import { Refused } from './answers.js';
import { datum, TARGETS } from './data.js';
import { differs, refuses, yes, type Probe } from './Probe.js';
import type { Prober } from './Prober.js';

async function failsSoon(
  prober: Prober,
  tokens: readonly number[],
  lossFn = 'cross_entropy',
  inputs = {},
): Promise<void> {
  const model = await prober.spare();
  const broken = {
    modelInput: ModelInput.fromInts([...tokens]),
    lossFnInputs: { target_tokens: [...tokens], weights: tokens.map(() => 1), ...inputs },
  };
  const { status, json } = await prober.submitPass(model.id, model.seqId, tokens.length === 0 ? [] : [broken], lossFn);
  if (status >= 300) throw new Refused(status, json);
  model.seqId++;
  await prober.result(json['request_id'] as string, { withinMs: prober.patienceMs });
}

/** What is refused, and whether by an answer: never by silence, never by a crash. */
export const limitProbes: readonly Probe[] = [
  { feature: 'limits: a pass without data is refused', run: (prober) => refuses(() => failsSoon(prober, [])) },
  {
    feature: 'limits: tokens outside the vocabulary are refused',
    run: (prober) => refuses(() => failsSoon(prober, [40, 2_000_000_000])),
  },
  {
    feature: 'limits: an unknown loss is refused',
    run: (prober) => refuses(() => failsSoon(prober, [40, 41], 'no_such_loss')),
  },
  {
    feature: 'limits: a missing input of a loss is refused',
    run: (prober) => refuses(() => failsSoon(prober, [40, 41], 'ppo')),
  },
  {
    feature: 'limits: an unknown model is refused',
    run: (prober) => refuses(() => prober.work('optim_step', { model_id: 'doctor-none', seq_id: 1, adam_params: {} })),
  },
  {
    feature: 'limits: an unknown result is refused',
    run: (prober) => refuses(() => prober.result('doctor-none', { withinMs: prober.patienceMs })),
  },
  {
    feature: 'limits: an unknown base model is refused',
    run: (prober) => refuses(async () => prober.release(await prober.create({ base_model: 'doctor/none' }))),
  },
  {
    feature: 'limits: an unknown key is refused',
    run: async (prober) => {
      const body = { model_id: (await prober.model()).id, seq_id: 999_999, no_such_key: 1, type: 'get_info' };
      const { status } = await prober.send('get_info', body);
      return status >= 400 && status < 500 ? yes() : differs('ignored: a misspelt option has no effect');
    },
  },
  {
    feature: 'limits: a name that is taken is refused',
    run: async (prober) => {
      const model = await prober.model();
      const path = `doctor-taken-${prober.now() % 1_000_000_000}`;
      await prober.turn(model, 'save_weights', { path });
      return refuses(() => prober.turn(model, 'save_weights', { path }));
    },
  },
  {
    feature: 'limits: work continues after a refusal',
    run: async (prober) => {
      await prober.pass([datum({ weights: TARGETS.map(() => 1) })], 'cross_entropy', { forwardOnly: true });
      return yes();
    },
  },
];
