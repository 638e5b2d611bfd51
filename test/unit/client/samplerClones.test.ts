import { expect, it } from 'vitest';
import { SamplingClient } from 'tinker-rx';
import { prompt, stage } from '../../marbles/client/stage.js';

it.each([0, 0.5, 1 - Number.EPSILON])(
  'numbers the samples of a clone one by one, whichever clone it is (%d)',
  (chance) => {
    const on = stage();
    const handle = on.sampler().getSamplerHandle();
    const clone = SamplingClient.fromSamplerHandle(handle, { ...on.fake.clientOptions, random: () => chance });
    for (let sample = 0; sample < 3; sample++) {
      on.clock.resolve(clone.sample({ prompt: prompt(), samplingParams: { maxTokens: 1 } }));
    }
    const seqIds = on.fake.to('asample').map(({ seqId }) => seqId!);
    expect(seqIds.every(Number.isSafeInteger)).toBe(true);
    expect(seqIds.map((seqId) => seqId - seqIds[0]!)).toEqual([0, 1, 2]);
    expect(seqIds[0]! % 1_000_000_000).toBe(0);
    expect(seqIds[0]).toBeGreaterThanOrEqual(1_000_000_000);
  },
);
