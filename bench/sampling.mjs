// Samples per second and CPU per sample of this client and of raw undici making the same two calls, in one run, both with
// as many samples under way at a time.
import { fork } from 'node:child_process';
import { Pool } from 'undici';
import { ModelInput, ServiceClient } from '../dist/index.js';

const SAMPLES = 5000;
const PROMPT_TOKENS = 512;
const CONNECTIONS = 128;
const ROUNDS = 4;

const prompt = Int32Array.from({ length: PROMPT_TOKENS }, (_, index) => 1000 + ((index * 7919) % 90_000));

export async function benchSampling() {
  const child = fork(new URL('./support/cannedServer.mjs', import.meta.url));
  const { port } = await new Promise((resolve) => child.once('message', resolve));
  const origin = `http://127.0.0.1:${port}`;
  try {
    const raw = [];
    const ours = [];
    for (let round = 0; round < ROUNDS; round++) {
      raw.push(await measure(() => rawUndici(origin)));
      ours.push(await measure(() => thisClient(origin)));
    }
    // The first round warms both up.
    const best = (runs) => runs.slice(1).reduce((a, b) => (a.seconds < b.seconds ? a : b));
    const [r, o] = [best(raw), best(ours)];
    console.log(`raw undici  ${perSecond(r)} samples/s  ${cpu(r)} µs CPU a sample`);
    console.log(`tinker-rx   ${perSecond(o)} samples/s  ${cpu(o)} µs CPU a sample`);
    const ratio = r.seconds / o.seconds;
    console.log(
      `ratio       ${(ratio * 100).toFixed(0)} % of raw throughput, ${((o.cpuMicros / r.cpuMicros) * 100).toFixed(0)} % of its CPU`,
    );
    return { ratio };
  } finally {
    child.disconnect();
  }
}
const perSecond = ({ seconds }) => (SAMPLES / seconds).toFixed(0).padStart(6);
const cpu = ({ cpuMicros }) => (cpuMicros / SAMPLES).toFixed(0).padStart(5);

async function measure(run) {
  const start = performance.now();
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return { seconds: (performance.now() - start) / 1000, cpuMicros: user + system };
}

/** The least a client can do: build the JSON, send it, read the promise, poll, read the arrays. */
async function rawUndici(origin) {
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const headers = { 'content-type': 'application/json', 'x-api-key': 'tml-bench' };
  let next = 0;
  let tokens = 0;
  const worker = async () => {
    while (next < SAMPLES) {
      const seq_id = next++;
      const body = JSON.stringify({
        sampling_session_id: 's:sample:0',
        seq_id,
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
      tokens += new Int32Array(bytes.slice(8, 8 + 256).buffer).length;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  await pool.close();
  if (tokens !== SAMPLES * 64) throw new Error(`expected ${SAMPLES * 64} tokens, got ${tokens}`);
}

async function thisClient(origin) {
  const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench', telemetry: false, logLevel: 'silent' });
  const sampler = await service.createSamplingClient({ baseModel: 'bench' });
  const input = ModelInput.fromInts(prompt);
  let next = 0;
  let tokens = 0;
  const worker = async () => {
    while (next < SAMPLES) {
      next++;
      const { sequences } = await sampler.sample({ prompt: input, samplingParams: { maxTokens: 64 } });
      tokens += sequences[0].tokens.length;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  await service.close();
  if (tokens !== SAMPLES * 64) throw new Error(`expected ${SAMPLES * 64} tokens, got ${tokens}`);
}

if (process.argv[1] === new URL(import.meta.url).pathname) await benchSampling();
