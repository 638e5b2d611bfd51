// forward_backward of this client, and a raw post of the ready bytes: node passRun.mjs <{ origin, datums, tokens, repeats }>.
// Prints, as JSON, the seconds and CPU seconds of each repeat: { arrays, lists, raw }.
import { Pool } from 'undici';
import { ModelInput, ServiceClient } from '../../dist/index.js';
import { encodeForwardBackwardRequest, prepareDatum } from '../../dist/wire/index.js';

const { origin, datums, tokens: size, repeats } = JSON.parse(process.argv[2]);
const tokens = Int32Array.from({ length: size }, (_, at) => (at * 7919) % 150_000);
const weights = new Float32Array(size).fill(1);
const lists = { target_tokens: Array.from(tokens), weights: Array.from(weights) };
const batch = (lossFnInputs) =>
  Array.from({ length: datums }, () => ({
    modelInput: ModelInput.fromInts(lossFnInputs.target_tokens),
    lossFnInputs,
  }));

const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench' });
const trainer = await service.createLoraTrainingClient({ baseModel: 'bench', rank: 8 });
const ours = async (inputs) => {
  const { lossFnOutputs } = await trainer.forwardBackward(batch(inputs), 'cross_entropy');
  if (lossFnOutputs.length !== datums) throw new Error(`expected ${datums} outputs, got ${lossFnOutputs.length}`);
};

const pool = new Pool(origin);
const headers = { 'x-api-key': 'tml-bench' };
const data = batch({ target_tokens: tokens, weights }).map((datum, index) => prepareDatum(datum, index));
const body = encodeForwardBackwardRequest({
  modelId: 'm',
  seqId: 1,
  data,
  lossFn: 'cross_entropy',
  forwardOnly: false,
});
const post = async (path, type, sent) => {
  const options = { method: 'POST', path, headers: { ...headers, 'content-type': type }, body: sent };
  return (await pool.request(options)).body;
};
const raw = async () => {
  const { request_id } = await (await post('/api/v1/forward_backward', 'application/x-protobuf', body)).json();
  await (await post('/api/v1/retrieve_future', 'application/json', JSON.stringify({ request_id }))).arrayBuffer();
};

const peers = { raw, arrays: () => ours({ target_tokens: tokens, weights }), lists: () => ours(lists) };
const measured = { raw: [], arrays: [], lists: [] };
// The first two rounds warm the compiler up and open the connections.
for (let repeat = -2; repeat < repeats; repeat++) {
  for (const [name, run] of Object.entries(peers)) {
    const before = process.cpuUsage();
    const start = performance.now();
    await run();
    const seconds = (performance.now() - start) / 1000;
    const { user, system } = process.cpuUsage(before);
    if (repeat >= 0) measured[name].push({ seconds, cpuSeconds: (user + system) / 1e6 });
  }
}
console.log(JSON.stringify(measured));
process.exit(0);
