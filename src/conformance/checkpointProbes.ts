import { parseTinkerPath } from '../wire/index.js';
import { Refused } from './answers.js';
import { datum, lossOf } from './data.js';
import { close, differs, holds, no, yes, type Outcome, type Probes } from './Probe.js';
import type { Prober } from './Prober.js';

const name = (prober: Prober, what: string): string => `doctor-${what}-${prober.now() % 1_000_000_000}`;
const rest = { lane: 'rest' } as const;

async function save(prober: Prober, what: string, path = 'save_weights', fields = {}): Promise<string> {
  const saved = await prober.turn(await prober.model(), path, { path: name(prober, what), ...fields });
  return String(saved['path']);
}

/** The address of a checkpoint below training_runs. */
function placeOf(path: string): string {
  const { trainingRunId, checkpointId } = parseTinkerPath(path);
  return `training_runs/${encodeURIComponent(trainingRunId)}/checkpoints/${checkpointId}`;
}

const answered = (status: number, json: object): Outcome =>
  status < 400 ? yes() : no(new Refused(status, json as never).message);

async function exists(
  prober: Prober,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  json?: unknown,
): Promise<Outcome> {
  const answer = await prober.send(path, json, { ...rest, method });
  return answered(answer.status, answer.json);
}

/** Saving, loading, listing and fetching weights. */
export const checkpointProbes: Probes = {
  'checkpoints: save, and resume with the optimizer': async (prober) => {
    const path = await save(prober, 'state');
    const model = await prober.spare();
    await prober.turn(model, 'load_weights', { path, optimizer: true });
    const pass = { forwardOnly: true };
    const [was, is] = [
      lossOf(await prober.pass([datum()], 'cross_entropy', pass)) ?? NaN,
      lossOf(await prober.pass([datum()], 'cross_entropy', { ...pass, model })) ?? NaN,
    ];
    return holds(close(was, is), `the loss was ${was}, resumed ${is}`);
  },
  'checkpoints: overwrite': async (prober) => {
    const fixed = name(prober, 'again');
    for (let times = 0; times < 2; times++)
      await prober.turn(await prober.model(), 'save_weights', { path: fixed, overwrite: times > 0 });
    return yes();
  },
  'checkpoints: sample from saved weights': async (prober) => {
    const path = await save(prober, 'sampler', 'save_weights_for_sampler');
    const sampler = await prober.samplerOf({ model_path: path });
    const sampled = await prober.sample([40, 41], { max_tokens: 2 }, { sampling_session_id: sampler, seq_id: 0 });
    return holds(sampled.sequences.length === 1, 'no sample');
  },
  'checkpoints: sample from weights without a name': async (prober) => {
    const saved = await prober.turn(await prober.model(), 'save_weights_for_sampler', {
      sampling_session_seq_id: 900_000,
    });
    return typeof saved['sampling_session_id'] === 'string' ? yes() : differs('no sampling_session_id');
  },
  'checkpoints: what is in a checkpoint': async (prober) => {
    const info = await prober.ask('weights_info', { tinker_path: await save(prober, 'info') }, rest);
    return holds(info['base_model'] === prober.baseModel, 'another base model');
  },
  'checkpoints: lists': (prober) => exists(prober, 'GET', 'checkpoints?limit=1&offset=0'),
  'checkpoints: search': (prober) => exists(prober, 'POST', 'checkpoints/search', { limit: 1 }),
  'checkpoints: expire, and are deleted': async (prober) => {
    const path = await save(prober, 'ttl');
    const ttl = await exists(prober, 'PUT', `${placeOf(path)}/ttl`, { ttl_seconds: 3600 });
    return ttl.state === 'yes' ? exists(prober, 'DELETE', placeOf(path)) : ttl;
  },
  'archives: exports with signed addresses': async (prober) => {
    const path = await save(prober, 'export', 'save_weights_external');
    const { urls } = await prober.ask(`${placeOf(path)}/external_weights_urls`, undefined, {
      ...rest,
      method: 'GET',
    });
    const names = Object.keys(urls ?? {});
    return holds(
      names.some((file) => file.endsWith('.safetensors')),
      `files: ${names.join(', ')}`,
    );
  },
  'archives: one file, as older servers give': async (prober) =>
    exists(prober, 'GET', `${placeOf(await save(prober, 'archive', 'save_weights_for_sampler'))}/archive`),
  'archives: adapters are uploaded': (prober) =>
    exists(prober, 'POST', 'external_weights_upload_start', {
      base_model: prober.baseModel,
      lora_config: { rank: 4, train_unembed: true, train_mlp: true, train_attn: true },
    }),
};
