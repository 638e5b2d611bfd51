import { defineLoss } from '../losses/index.js';
import type { LossFnConfig } from '../wire/index.js';
import { datum, lossOf, rowOf, TARGETS } from './data.js';
import { close, differs, yes, type Outcome, type Probes } from './Probe.js';
import type { Prober } from './Prober.js';

const [LOW, HIGH, BETA] = [0.9, 1.1, 0.1];
const CLIP: LossFnConfig = { clip_low_threshold: LOW, clip_high_threshold: HIGH };
const clamp = (ratio: number) => Math.min(HIGH, Math.max(LOW, ratio));

/** Per token: what it adds to the loss, from the logprob p, the given one q, the advantage a and the ratio r. */
type Term = (token: { p: number; q: number; a: number; r: number }) => number;

/** The logprobs of the targets now. */
async function logprobs(prober: Prober): Promise<readonly number[]> {
  return rowOf(await prober.pass([datum()], 'cross_entropy', { forwardOnly: true }), 'logprobs');
}

const ADVANTAGES = TARGETS.map((_, index) => (index % 3) - 0.5);
const SHIFTS = TARGETS.map((_, index) => (index - 4) / 15);

function compared(loss: number | undefined, expected: number): Outcome {
  if (loss === undefined) return differs('runs; reports no loss to compare');
  return close(loss, expected) ? yes() : differs(`${loss.toFixed(4)} instead of ${expected.toFixed(4)}`);
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const lossProbe = (name: string, term: Term, lossFnConfig?: LossFnConfig) => async (prober: Prober) => {
  const p = await logprobs(prober);
  const q = p.map((value, index) => value + SHIFTS[index]!);
  const options = { forwardOnly: true, ...(lossFnConfig && { lossFnConfig }) };
  const output = await prober.pass([datum({ logprobs: q, advantages: ADVANTAGES })], name, options);
  const terms = p.map((value, index) =>
    term({ p: value, q: q[index]!, a: ADVANTAGES[index]!, r: Math.exp(value - q[index]!) }),
  );
  return compared(lossOf(output), sumOf(terms));
};

/** Every ready loss against its formula, what else a loss may be, and the optimizers. */
export const lossProbes: Probes = {
  'loss: cross_entropy': async (prober) => {
    const output = await prober.pass([datum()], 'cross_entropy', { forwardOnly: true });
    return compared(lossOf(output), -sumOf(rowOf(output, 'logprobs')));
  },
  'loss: importance_sampling': lossProbe('importance_sampling', ({ r, a }) => -r * a),
  'loss: ppo': lossProbe('ppo', ({ r, a }) => -Math.min(r * a, clamp(r) * a), CLIP),
  'loss: cispo': lossProbe('cispo', ({ r, a, p }) => -clamp(r) * p * a, CLIP),
  'loss: dro': lossProbe('dro', ({ p, q, a }) => -(p * a - 0.5 * BETA * (p - q) ** 2), { beta: BETA }),
  'loss: gspo': async (prober) => {
    const p = await logprobs(prober);
    const q = p.map((value, index) => value + SHIFTS[index]!);
    const inputs = { logprobs: q, advantages: ADVANTAGES, sequence_ratio_mask: p.map(() => 1) };
    const output = await prober.pass([datum(inputs)], 'gspo', { forwardOnly: true, lossFnConfig: CLIP });
    const ratio = Math.exp(-sumOf(SHIFTS) / p.length);
    const terms = ADVANTAGES.map((a) => -Math.min(ratio * a, clamp(ratio) * a));
    return compared(lossOf(output), sumOf(terms));
  },
  'loss: stable_reinforce': async (prober) => {
    const p = await logprobs(prober);
    await prober.pass([datum({ logprobs: p, advantages: ADVANTAGES })], 'stable_reinforce', { forwardOnly: true });
    return yes('runs; defined in words only, so its value is not compared');
  },
  'loss: soft targets': async (prober) => {
    const pairs = TARGETS.map((token) => [token, 45]);
    const weights = TARGETS.map(() => [0.75, 0.25]);
    const soft = { ...datum(), lossFnInputs: { target_tokens: pairs, weights } };
    const output = await prober.pass([soft], 'cross_entropy', { forwardOnly: true });
    const p = rowOf(output, 'logprobs');
    if (p.length !== 2 * TARGETS.length) return differs(`${p.length} logprobs for ${2 * TARGETS.length} targets`);
    return compared(lossOf(output), -p.reduce((sum, value, index) => sum + value * (index % 2 === 0 ? 0.75 : 0.25), 0));
  },
  'loss: gradients keep the scale of the weights': async (prober) => {
    const norm = async (weight: number): Promise<number | undefined> => {
      const model = await prober.model();
      await prober.pass([datum({ weights: TARGETS.map(() => weight) })], 'cross_entropy');
      const { metrics } = await prober.turn(model, 'optim_step', { adam_params: { learning_rate: 0 } });
      const named = Object.entries((metrics ?? {}) as Record<string, number>).find(([name]) => /grad/.test(name));
      return named?.[1];
    };
    // Gradients of earlier probes are cleared by the first step.
    await prober.turn(await prober.model(), 'optim_step', { adam_params: { learning_rate: 0 } }).catch(() => undefined);
    const [one, two] = [await norm(1), await norm(2)];
    if (one === undefined || two === undefined)
      return { state: 'unknown', note: 'optim_step reports no gradient norm' };
    return close(two / one, 2, 0.02)
      ? yes()
      : differs(`weights of 2 give ${(two / one).toFixed(2)} times the gradient of 1`);
  },
  'loss: custom, run by the server': async (prober) => {
    const loss = defineLoss(({ logprobs: p, weights }, ops) => ops.weightedSum(p, weights).neg());
    const { loss_id: id } = await prober.work('create_custom_loss', {
      session_id: await prober.session(),
      custom_loss_seq_id: 0,
      name: 'doctor',
      inputs: loss.inputs.map(({ name }) => ({ name, rank: 1 })),
      graph: loss.graph,
      type: 'create_custom_loss',
    });
    const options = { forwardOnly: true, lossFnConfig: { loss_id: String(id) } };
    const output = await prober.pass([datum()], 'custom', options);
    return compared(lossOf(output), -sumOf(rowOf(output, 'logprobs')));
  },
  'optimizer: adamw': async (prober) => {
    const model = await prober.spare();
    const before = await prober.pass([datum()], 'cross_entropy', { model });
    await prober.turn(model, 'optim_step', { adam_params: { learning_rate: 1e-2 } });
    const after = await prober.pass([datum()], 'cross_entropy', { model, forwardOnly: true });
    const [first = NaN, second = NaN] = [lossOf(before), lossOf(after)];
    return second < first ? yes() : differs(`a step took the loss from ${first} to ${second}`);
  },
  'optimizer: dimuon': async (prober) => {
    const model = await prober.create({ optimizer_config: { type: 'dimuon', version: 1 } });
    try {
      await prober.pass([datum()], 'cross_entropy', { model });
      const params = { type: 'dimuon', learning_rate: 1e-3, grad_clip_norm: 0, beta1: 0.9 };
      await prober.turn(model, 'optim_step', { optimizer_params: params });
      return yes('runs; defined in words only, so its step is not compared');
    } finally {
      await prober.release(model);
    }
  },
};
