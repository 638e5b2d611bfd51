// One measurement of one peer in a process of its own: node sampleRun.mjs <job as JSON>. Prints what it took as JSON.
// The job: { origin, peer: raw | ours, form: at-once | workers | sampleFrom, samples, promptTokens }
import { rawHttp2, rawUndici, SAMPLED_TOKENS, thisClient } from './samplers.mjs';

const IN_FLIGHT = 128;
const job = JSON.parse(process.argv[2]);
const { samples, promptTokens } = job;
const raw = job.origin.startsWith('https:') ? rawHttp2 : rawUndici;
const peer = await (job.peer === 'raw' ? raw : thisClient)(job.origin, promptTokens);

// Loaded before the clock starts, as the client and undici are: bench/importing.mjs measures that.
const { map } = job.form === 'sampleFrom' ? await import('rxjs') : {};
const { fromIterable } = job.form === 'sampleFrom' ? await import('../../dist/sources/index.js') : {};
const { sampleFrom } = job.form === 'sampleFrom' ? await import('../../dist/operators/index.js') : {};

const forms = {
  /** What people write: one list, one Promise.all. */
  'at-once': async () => sum(await Promise.all(Array.from({ length: samples }, () => peer.sample()))),
  /** A fixed number in flight. */
  workers: async () => {
    let [started, tokens] = [0, 0];
    const worker = async () => {
      while (started < samples) {
        started++;
        const sampled = await peer.sample();
        tokens += sampled;
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
    return tokens;
  },
  /** Through the operator, from a source that pauses while there is no room, as the documentation asks for. */
  sampleFrom: async () => {
    let tokens = 0;
    await fromIterable(Array.from({ length: samples }).keys())
      .pipe(map(peer.input), sampleFrom(peer.sampler, { samplingParams: { maxTokens: SAMPLED_TOKENS } }))
      .forEach(({ response }) => (tokens += response.sequences[0].tokens.length));
    return tokens;
  },
};
const sum = (values) => values.reduce((total, value) => total + value, 0);

const before = process.cpuUsage();
const start = performance.now();
const tokens = await forms[job.form]();
const seconds = (performance.now() - start) / 1000;
const { user, system } = process.cpuUsage(before);
if (tokens !== samples * SAMPLED_TOKENS) throw new Error(`expected ${samples * SAMPLED_TOKENS} tokens, got ${tokens}`);
await peer.close();
const residentMb = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6, residentMb }));
