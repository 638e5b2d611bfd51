// Many samples streamed through sampleFrom over a transport that answers from memory: node --expose-gc growthRun.mjs <{ samples, parts }>.
// Prints, for each part of the stream, its CPU seconds and the heap in use after it.
import { asyncScheduler, observeOn, of, tap } from 'rxjs';
import { ModelInput, ServiceClient } from '../../dist/index.js';
import { sampleFrom } from '../../dist/operators/index.js';
import { fromIterable } from '../../dist/sources/index.js';
import { encodeSampleResponse } from '../../dist/wire/proto/sampleResponse.js';
import { promptOf, SAMPLED_TOKENS } from './samplers.mjs';

const { samples, parts } = JSON.parse(process.argv[2]);
const result = encodeSampleResponse({
  sequences: [
    { stopReason: 'length', tokens: new Int32Array(SAMPLED_TOKENS), logprobs: new Float32Array(SAMPLED_TOKENS) },
  ],
  promptCacheHitTokens: 0,
});
const answers = { create_session: { session_id: 's' }, create_sampling_session: { sampling_session_id: 's:sample:0' } };
let accepted = 0;
const transport = Object.assign(
  ({ path }) => {
    const call = path.slice('/api/v1/'.length);
    if (call === 'retrieve_future')
      return of({ status: 200, headers: { 'content-type': 'application/x-protobuf' }, body: result }).pipe(
        observeOn(asyncScheduler),
      );
    const body =
      call === 'asample' ? { request_id: `r${accepted++}`, sample_sequence_ids: ['q'] } : (answers[call] ?? {});
    return of({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
    });
  },
  { timesOut: true },
);
const service = new ServiceClient({ apiKey: 'tml-bench', telemetry: false, transport });
const sampler = await service.createSamplingClient({ baseModel: 'bench' });
const prompt = promptOf(64);
const inUse = () => {
  // Twice: what the first one frees of memory outside the heap is counted only when it has been swept.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1e6;
};
const size = samples / parts;
const seen = [];
let before = process.cpuUsage();
let count = 0;
function* prompts() {
  for (let index = 0; index < samples; index++) yield ModelInput.fromInts(prompt);
}
await fromIterable(prompts())
  .pipe(
    sampleFrom(sampler, { samplingParams: { maxTokens: SAMPLED_TOKENS }, concurrency: 256 }),
    tap(() => {
      if (++count % size !== 0) return;
      const { user, system } = process.cpuUsage(before);
      seen.push({ cpuSeconds: (user + system) / 1e6, megabytes: inUse() });
      before = process.cpuUsage();
    }),
  )
  .forEach(() => undefined);
if (count !== samples) throw new Error(`expected ${samples} results, got ${count}`);
console.log(JSON.stringify(seen));
process.exit(0);
