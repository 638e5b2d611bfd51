// Answers per second of the gateway beside its sampler alone, on the embedded service, in one run and turn and turn about: the same
// prompts, seeds and tokens, as many under way at a time. Alone means: render the conversation, sample, parse the answer. The gateway's callers
// are in the same process and do as little as can be done; what they cost is on its side. `node bench/serving.mjs`, or `node bench/serving.mjs cold`, after
// `npm run build`.
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { ServiceClient } from '../dist/index.js';
import { serveSampler } from '../dist/serve/index.js';
import { BareCaller } from './support/bareCaller.mjs';

// What the small model answers in a sentence.
const QUESTIONS = readFileSync(new URL('../examples/data/questions.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line).messages[0].content);
const CALLERS = 50;
const ANSWERS = 1000;
const SLICE = 250;
const MAX_TOKENS = 32;

export async function benchServing({ cold = false } = {}) {
  const local = fork(new URL('./support/localServer.mjs', import.meta.url));
  const { url, apiKey } = await new Promise((resolve) => local.once('message', resolve));
  const service = new ServiceClient({ baseUrl: url, apiKey, telemetry: false });
  const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
  const gateway = await serveSampler(sampler, { maxRequests: CALLERS });
  const callers = Array.from(
    { length: CALLERS },
    () => new BareCaller(gateway.url, gateway.apiKey, '/v1/chat/completions'),
  );
  const renderer = await sampler.getRenderer();

  const alone = async (messages, seed) => {
    const prompt = renderer.buildGenerationPrompt(messages);
    const samplingParams = { maxTokens: MAX_TOKENS, seed, stop: renderer.getStopSequences() };
    const { sequences } = await sampler.sample({ prompt, samplingParams });
    renderer.parse(sequences[0].tokens);
    return sequences[0].tokens.length;
  };
  const served = async (messages, seed, caller) => {
    const asked = { model: 'tinker-rx/tiny', messages, seed, max_tokens: MAX_TOKENS };
    const { status, json } = await callers[caller].ask(asked);
    if (status !== 200) throw new Error(`HTTP ${status}: ${JSON.stringify(json)}`);
    return json.usage.completion_tokens;
  };
  try {
    const sums = { alone: { seconds: 0, tokens: 0 }, served: { seconds: 0, tokens: 0 } };
    // A gateway runs for long: it warms up for as long as it is measured. `cold` leaves that out.
    for (let slice = cold ? -1 : -ANSWERS / SLICE; slice < ANSWERS / SLICE; slice++) {
      for (const [name, ask] of Object.entries({ alone, served })) {
        const { seconds, tokens } = await measure(ask, slice);
        if (slice < 0) continue;
        sums[name].seconds += seconds;
        sums[name].tokens += tokens;
      }
    }
    if (sums.alone.tokens !== sums.served.tokens)
      throw new Error(`${sums.alone.tokens} tokens alone, ${sums.served.tokens} through the gateway`);
    for (const [name, { seconds, tokens }] of Object.entries(sums))
      console.log(
        `${name.padEnd(7)} ${(ANSWERS / seconds).toFixed(1)} answers/s  ${(tokens / seconds).toFixed(0)} tokens/s`,
      );
    const ratio = sums.alone.seconds / sums.served.seconds;
    console.log(`ratio   ${(100 * ratio).toFixed(0)} % of the sampler alone, ${CALLERS} callers at a time`);
    return { ratio };
  } finally {
    for (const caller of callers) caller.close();
    await gateway.close();
    await service.close();
    local.disconnect();
  }
}

/** A slice of answers, by as many callers as there are. */
async function measure(ask, slice) {
  const start = performance.now();
  let next = 0;
  let tokens = 0;
  const caller = async (_, place) => {
    while (next < SLICE) {
      const number = next++;
      const messages = [{ role: 'user', content: QUESTIONS[(number + slice + ANSWERS) % QUESTIONS.length] }];
      const sampled = await ask(messages, 1 + number, place);
      tokens += sampled;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return { seconds: (performance.now() - start) / 1000, tokens };
}

if (process.argv[1] === new URL(import.meta.url).pathname) await benchServing({ cold: process.argv[2] === 'cold' });
