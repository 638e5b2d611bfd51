import { ModelInput } from '../wire/index.js';
import { Refused } from './answers.js';
import { datum, TARGETS } from './data.js';
import { differs, refuses, yes, type Probes } from './Probe.js';
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
export const limitProbes: Probes = {
  'limits: a pass without data is refused': (prober) => refuses(() => failsSoon(prober, [])),
  'limits: tokens outside the vocabulary are refused': (prober) =>
    refuses(() => failsSoon(prober, [40, 2_000_000_000])),
  'limits: an unknown loss is refused': (prober) => refuses(() => failsSoon(prober, [40, 41], 'no_such_loss')),
  'limits: a missing input of a loss is refused': (prober) => refuses(() => failsSoon(prober, [40, 41], 'ppo')),
  'limits: an unknown model is refused': (prober) =>
    refuses(() => prober.work('optim_step', { model_id: 'doctor-none', seq_id: 1, adam_params: {} })),
  'limits: an unknown result is refused': (prober) =>
    refuses(() => prober.result('doctor-none', { withinMs: prober.patienceMs })),
  'limits: an unknown base model is refused': (prober) =>
    refuses(async () => prober.release(await prober.create({ base_model: 'doctor/none' }))),
  'limits: an unknown key is refused': async (prober) => {
    const body = { model_id: (await prober.model()).id, seq_id: 999_999, no_such_key: 1, type: 'get_info' };
    const { status } = await prober.send('get_info', body);
    return status >= 400 && status < 500 ? yes() : differs('ignored: a misspelt option has no effect');
  },
  'limits: a name that is taken is refused': async (prober) => {
    const model = await prober.model();
    const path = `doctor-taken-${prober.now() % 1_000_000_000}`;
    await prober.turn(model, 'save_weights', { path });
    return refuses(() => prober.turn(model, 'save_weights', { path }));
  },
  'limits: work continues after a refusal': async (prober) => {
    await prober.pass([datum({ weights: TARGETS.map(() => 1) })], 'cross_entropy', { forwardOnly: true });
    return yes();
  },
};
