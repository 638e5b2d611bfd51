import { map, of } from 'rxjs';
import type { SampleOptions } from '../../src/client/SamplingClient.js';
import type { RlTrainer } from '../../src/rl/learning/GrpoOptions.js';
import type { RolloutHook } from '../../src/rl/index.js';
import { PROMPT } from './fakeLoop.js';

const sampler = {
  sample: ({ numSamples = 1 }: SampleOptions) =>
    of({
      promptCacheHitTokens: 0,
      sequences: Array.from({ length: numSamples }, () => ({
        ...{ stopReason: 'stop' as const, tokens: Int32Array.of(104, 105) },
        logprobs: Float32Array.of(-0.5, -0.5),
      })),
    }),
};
export type InstantSampler = typeof sampler;

/** A trainer and samplers that answer at once, and always the same: for the contract of operators. */
export const instantTrainer: RlTrainer<InstantSampler> = {
  forwardBackward: (data) =>
    of({ lossFnOutputType: 'fake', lossFnOutputs: data.map(() => ({})), metrics: { 'loss:sum': 1 } }),
  optimStep: () => of({}),
  saveWeightsAndGetSamplingClient: () => of(sampler),
};
export { sampler as instantSampler };

/** One sample, and a reward by its place in the group: 1, 0, 1, … */
export const instantAgent: RolloutHook<string, InstantSampler> = (_, policy, { index }) =>
  policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: (index + 1) % 2 })));
