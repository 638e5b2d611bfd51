/**
 * Run by evalKill.test.ts in a process of its own, to be killed: evaluates 2,000 examples, or what an earlier process left of them, and says which
 * it asks on stdout. Arguments: the result file, then the URL and key of a service; without them a sampler that is written here answers.
 */
import { lastValueFrom, map, tap, timer } from 'rxjs';
import { ByteTokenizer, getRenderer } from '../../src/chat/index.js';
import { ServiceClient } from '../../src/client/index.js';
import { answers, evaluateInto } from '../../src/evals/index.js';
import type { Sampleable } from '../../src/operators/sampling/sampleFrom.js';
import type { RolloutHook } from '../../src/rl/index.js';
import { fromArray } from '../../src/sources/index.js';

interface Task {
  readonly prompt: string;
}
const [file, baseUrl, apiKey = ''] = process.argv.slice(2) as [string, string?, string?];
const service = baseUrl === undefined ? undefined : new ServiceClient({ baseUrl, apiKey, telemetry: false });
const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const sequence = { stopReason: 'length' as const, tokens: Int32Array.of(65), logprobs: Float32Array.of(-1) };
const written: Sampleable = {
  sample: ({ samplingParams }) =>
    timer((samplingParams?.seed ?? 0) % 20).pipe(map(() => ({ sequences: [sequence], promptCacheHitTokens: 0 }))),
};
const sampler: Sampleable = (await service?.createSamplingClient({ baseModel: 'tinker-rx/tiny' })) ?? written;
const tasks = fromArray(Array.from({ length: 2000 }, (_, index) => ({ prompt: `${index}`, answer: 'a' })));
const answer = answers<Task, Sampleable>({ renderer });
const agent: RolloutHook<Task, Sampleable> = (task, policy, context) => {
  process.stdout.write(`ask ${task.prompt}\n`);
  return answer(task, policy, context);
};
const records = tasks.pipe(
  evaluateInto(file, agent, {
    ...{ sampler, renderer, scorers: { short: ({ output }) => 1 / (1 + output.length) }, concurrency: 100 },
    samplingParams: { maxTokens: 2 },
  }),
  tap(() => process.stdout.write('have\n')),
);
await lastValueFrom(records);
await service?.close();
