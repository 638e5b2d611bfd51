// What a sample that waits for its turn takes: node --expose-gc waitingRun.mjs <{ origin, samples, promptTokens }>. Prints bytes as JSON.
import { SAMPLED_TOKENS, thisClient } from './samplers.mjs';

const { origin, samples, promptTokens } = JSON.parse(process.argv[2]);
const peer = await thisClient(origin, promptTokens);
const inUse = () => {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};
const ask = () => peer.sampler.sample({ prompt: peer.input(), samplingParams: { maxTokens: SAMPLED_TOKENS } });
// Enough for all 400 slots: what follows waits, in the same turn of the event loop, so nothing is answered meanwhile.
const first = Array.from({ length: 3000 }, ask);
const before = inUse();
const waiting = Array.from({ length: samples }, ask);
const bytesPerSample = (inUse() - before) / samples;
await Promise.all([...first, ...waiting]);
await peer.close();
console.log(JSON.stringify({ bytesPerSample, promptBytes: 4 * promptTokens }));
