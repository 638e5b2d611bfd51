import { Refused } from './answers.js';
import { datum, lossOf } from './data.js';
import { differs, holds, no, yes, type Probes } from './Probe.js';

/** In which order work runs, and what happens to the same request twice. */
export const orderProbes: Probes = {
  'order: by number, whatever arrives first': async (prober) => {
    // A fresh one: a step without gradients changes nothing only where the optimizer has no momentum yet.
    const model = await prober.create();
    const loss = async () => lossOf(await prober.pass([datum()], 'cross_entropy', { model, forwardOnly: true })) ?? NaN;
    const before = await loss();
    const begun = prober.now();
    await prober.turn(await prober.spare(), 'optim_step', { adam_params: { learning_rate: 0 } });
    const withinMs = Math.max(1000, 5 * (prober.now() - begun));
    const [first, second] = [model.seqId++, model.seqId++];
    const step = { model_id: model.id, seq_id: second, adam_params: { learning_rate: 1e-2 } };
    const { request_id: id } = await prober.ask('optim_step', step);
    const early = await prober.result(id as string, { withinMs }).then(
      () => true,
      (error: unknown) => !(error instanceof Refused && error.status === 408),
    );
    const { status, json } = await prober.submitPass(model.id, first, [datum()], 'cross_entropy');
    if (status >= 300) return no(new Refused(status, json).message);
    await prober.result(json['request_id'] as string);
    if (!early) await prober.result(id as string);
    const after = await loss();
    await prober.release(model);
    return early || after === before ? differs('by arrival: this client sends one after the other') : yes();
  },
  'order: the same turn again is the same work': async (prober) => {
    const model = await prober.model();
    const seqId = model.seqId++;
    const send = () => prober.submitPass(model.id, seqId, [datum()], 'cross_entropy', { forwardOnly: true });
    const [one, two] = [await send(), await send()];
    if (one.status >= 300) return no(new Refused(one.status, one.json).message);
    await prober.result(one.json['request_id'] as string);
    if (two.status === 409) return yes('refuses the second: it counts as accepted');
    return holds(one.json['request_id'] === two.json['request_id'], 'runs twice: a retried pass counts double');
  },
  'order: the same sample again is the same work': async (prober) => {
    await prober.sample([40, 41], { max_tokens: 1 });
    const again = { seq_id: 1_000_000 };
    const one = await prober.submitSample([40, 41], { max_tokens: 1 }, again);
    const two = await prober.submitSample([40, 41], { max_tokens: 1 }, again);
    return holds(one['request_id'] === two['request_id'], 'samples twice');
  },
};
