// The ways of sampling that are compared: raw undici over plain HTTP and node:http2 over TLS, both making the least number of calls, and
// this client as people have it, with telemetry.
import { connect } from 'node:http2';
import { Pool } from 'undici';

const CONNECTIONS = 128;
export const SAMPLED_TOKENS = 64;

export const promptOf = (tokens) => Int32Array.from({ length: tokens }, (_, at) => 1000 + ((at * 7919) % 90_000));

/** The least a client can do: build the JSON, send it, read the promise, poll, read the arrays. */
function rawSampler(promptTokens, post, close) {
  const prompt = promptOf(promptTokens);
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
    const { request_id } = JSON.parse(await post('/api/v1/asample', 'application/json', body));
    const poll = JSON.stringify({ request_id, allow_metadata_only: true });
    const bytes = new Uint8Array(await post('/api/v1/retrieve_future', 'application/x-protobuf', poll));
    return new Int32Array(bytes.slice(8, 8 + 4 * SAMPLED_TOKENS).buffer).length;
  };
  return { sample, close };
}

export const HEADERS = { 'content-type': 'application/json', 'x-api-key': 'tml-bench' };

export function rawUndici(origin, promptTokens) {
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const post = async (path, accept, body) => {
    const sent = await pool.request({ method: 'POST', path, headers: { ...HEADERS, accept }, body });
    return Buffer.from(await sent.body.arrayBuffer());
  };
  return rawSampler(promptTokens, post, () => pool.close());
}

/** One connection, as node:http2's documentation uses it. */
export function rawHttp2(origin, promptTokens) {
  const session = connect(origin);
  const post = (path, accept, body) => postOver(session, path, accept, body);
  return rawSampler(promptTokens, post, () => session.close());
}

export const postOver = (session, path, accept, body) =>
  new Promise((resolve, reject) => {
    const stream = session.request({ ':method': 'POST', ':path': path, ...HEADERS, accept });
    const chunks = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('end', () => resolve(Buffer.concat(chunks)));
    stream.on('error', reject);
    stream.end(body);
  });

/** Loads the client only when it is asked for, so that the other peer's process does not pay for it. */
export async function thisClient(origin, promptTokens) {
  const { ModelInput, ServiceClient } = await import('../../dist/index.js');
  const prompt = promptOf(promptTokens);
  const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench' });
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
