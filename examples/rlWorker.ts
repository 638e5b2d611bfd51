// A process of rlProcesses.ts: tries a task with the sampler it is given, and says how good the answer was.
import { ModelInput, SamplingClient } from 'tinker-rx';
import type { Turn } from 'tinker-rx/rl';

export interface Asked {
  readonly seed: number;
  readonly prompt: Int32Array;
  readonly handle: string;
}
export interface Tried {
  readonly seed: number;
  readonly sequence: Turn['sequence'];
  readonly reward: number;
}

const samplers = new Map<string, SamplingClient>();

async function attempt({ seed, prompt, handle }: Asked): Promise<void> {
  const sampler = samplers.get(handle) ?? SamplingClient.fromSamplerHandle(handle);
  samplers.set(handle, sampler);
  const samplingParams = { seed, maxTokens: 8 };
  const { sequences } = await sampler.sample({ prompt: ModelInput.fromInts(prompt), samplingParams });
  const [sequence] = sequences;
  // Any grader will do: one that runs the tests of a program, say, and must not share a process with others.
  const reward = sequence!.tokens[0] === '-'.charCodeAt(0) ? 1 : 0;
  process.send?.({ seed, sequence: sequence!, reward } satisfies Tried);
}

process.on('message', (asked: Asked) => void attempt(asked));
process.once('disconnect', () => void Promise.all(Array.from(samplers.values(), (sampler) => sampler.close())));
