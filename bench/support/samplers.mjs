// The two ways of sampling that are compared: raw undici making the least number of calls, and this client.
import { Pool } from 'undici';

const CONNECTIONS = 128;
export const SAMPLED_TOKENS = 64;

export const promptOf = (tokens) => Int32Array.from({ length: tokens }, (_, at) => 1000 + ((at * 7919) % 90_000));

/** The least a client can do: build the JSON, send it, read the promise, poll, read the arrays. */
export function rawUndici(origin, promptTokens) {
  const prompt = promptOf(promptTokens);
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const headers = { 'content-type': 'application/json', 'x-api-key': 'tml-bench' };
  let seq_id = 0;
  const sample = async () => {
    const body = JSON.stringify({
      sampling_session_id: 's:sample:0',
      seq_id: seq_id++,
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(prompt) }] },
      sampling_params: { max_tokens: SAMPLED_TOKENS, temperature: 1, top_k: -1, top_p: 1 },
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
    return new Int32Array(bytes.slice(8, 8 + 4 * SAMPLED_TOKENS).buffer).length;
  };
  return { sample, close: () => pool.close() };
}

/** Loads the client only when it is asked for, so that the other peer's process does not pay for it. */
export async function thisClient(origin, promptTokens) {
  const { ModelInput, ServiceClient } = await import('../../dist/index.js');
  const prompt = promptOf(promptTokens);
  const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench', telemetry: false });
  const sampler = await service.createSamplingClient({ baseModel: 'bench' });
  // Each sample has a prompt of its own: nothing is remembered from one to the next.
  const input = () => ModelInput.fromInts(prompt);
  const sample = async () => {
    const { sequences } = await sampler.sample({
      prompt: input(),
      samplingParams: { maxTokens: SAMPLED_TOKENS },
    });
    return sequences[0].tokens.length;
  };
  return { sample, sampler, input, close: async () => service.close() };
}
