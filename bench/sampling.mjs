// Samples per second and CPU per sample of this client and of raw undici making the same two calls, in one run, both with
// as many samples under way at a time. `node bench/sampling.mjs cold` leaves out the warm-up: what a short program sees.
import { fork } from 'node:child_process';
import { Pool } from 'undici';
import { ModelInput, ServiceClient } from '../dist/index.js';

const SAMPLES = 5000;
const SLICE = 250;
const WARM_UP_SLICES = 20;
const PROMPT_TOKENS = 512;
const CONNECTIONS = 128;

const prompt = Int32Array.from({ length: PROMPT_TOKENS }, (_, index) => 1000 + ((index * 7919) % 90_000));

export async function benchSampling({ warmUpSlices = WARM_UP_SLICES } = {}) {
  const child = fork(new URL('./support/cannedServer.mjs', import.meta.url));
  const { port } = await new Promise((resolve) => child.once('message', resolve));
  const origin = `http://127.0.0.1:${port}`;
  const [raw, ours] = [rawUndici(origin), await thisClient(origin)];
  try {
    const [r, o] = [nothing(), nothing()];
    // Turn and turn about in short slices, so that whatever else the machine does meets both alike.
    for (let slice = -warmUpSlices; slice < SAMPLES / SLICE; slice++) {
      const [a, b] = [await measure(raw.sample), await measure(ours.sample)];
      if (slice < 0) continue;
      add(r, a);
      add(o, b);
    }
    console.log(`raw undici  ${perSecond(r)} samples/s  ${cpu(r)} µs CPU a sample`);
    console.log(`tinker-rx   ${perSecond(o)} samples/s  ${cpu(o)} µs CPU a sample`);
    const ratio = r.seconds / o.seconds;
    const cpuRatio = o.cpuMicros / r.cpuMicros;
    console.log(
      `ratio       ${(ratio * 100).toFixed(0)} % of raw throughput, ${(cpuRatio * 100).toFixed(0)} % of its CPU`,
    );
    return { ratio };
  } finally {
    await Promise.all([raw.close(), ours.close()]);
    child.disconnect();
  }
}
const nothing = () => ({ seconds: 0, cpuMicros: 0 });
const add = (sum, { seconds, cpuMicros }) => {
  sum.seconds += seconds;
  sum.cpuMicros += cpuMicros;
};
const perSecond = ({ seconds }) => (SAMPLES / seconds).toFixed(0).padStart(6);
const cpu = ({ cpuMicros }) => (cpuMicros / SAMPLES).toFixed(0).padStart(5);

/** A slice of samples, as many under way at a time as there are connections. */
async function measure(sample) {
  const start = performance.now();
  const before = process.cpuUsage();
  let next = 0;
  let tokens = 0;
  const worker = async () => {
    while (next < SLICE) {
      next++;
      const sampled = await sample();
      tokens += sampled;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  const { user, system } = process.cpuUsage(before);
  if (tokens !== SLICE * 64) throw new Error(`expected ${SLICE * 64} tokens, got ${tokens}`);
  return { seconds: (performance.now() - start) / 1000, cpuMicros: user + system };
}

/** The least a client can do: build the JSON, send it, read the promise, poll, read the arrays. */
function rawUndici(origin) {
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const headers = { 'content-type': 'application/json', 'x-api-key': 'tml-bench' };
  let seq_id = 0;
  const sample = async () => {
    const body = JSON.stringify({
      sampling_session_id: 's:sample:0',
      seq_id: seq_id++,
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(prompt) }] },
      sampling_params: { max_tokens: 64, temperature: 1, top_k: -1, top_p: 1 },
      type: 'sample',
    });
    const sent = await pool.request({ method: 'POST', path: '/api/v1/asample', headers, body });
    const { request_id } = await sent.body.json();
    const polled = await pool.request({
      method: 'POST',
      path: '/api/v1/retrieve_future',
      headers: { ...headers, accept: 'application/x-protobuf' },
      body: JSON.stringify({ request_id, allow_metadata_only: true }),
    });
    const bytes = new Uint8Array(await polled.body.arrayBuffer());
    return new Int32Array(bytes.slice(8, 8 + 256).buffer).length;
  };
  return { sample, close: () => pool.close() };
}

async function thisClient(origin) {
  const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench', telemetry: false });
  const sampler = await service.createSamplingClient({ baseModel: 'bench' });
  // A prompt of its own for each sample: nothing is remembered from one to the next.
  const sample = async () => {
    const input = ModelInput.fromInts(prompt);
    const { sequences } = await sampler.sample({ prompt: input, samplingParams: { maxTokens: 64 } });
    return sequences[0].tokens.length;
  };
  return { sample, close: async () => service.close() };
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  await benchSampling(process.argv[2] === 'cold' ? { warmUpSlices: 0 } : {});
