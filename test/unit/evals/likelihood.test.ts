import { lastValueFrom, of, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { bitsPerByte } from '../../../src/chat/index.js';
import type { SampleOptions } from '../../../src/client/SamplingClient.js';
import { likelihood, summarize } from '../../../src/evals/index.js';
import { toDatums } from '../../../src/operators/index.js';
import { TensorData } from '../../../src/wire/tensor.js';
import { renderer } from './scriptedSampler.js';

/** What the model thinks of the token at a place: any numbers that differ. */
const logprobAt = (place: number): number => -(1 + (place % 5)) / 4;
const sampler = {
  sample: ({ prompt }: SampleOptions) =>
    of({
      sequences: [],
      promptCacheHitTokens: 0,
      promptLogprobs: Float32Array.from({ length: prompt.length }, (_, place) =>
        place === 0 ? NaN : logprobAt(place),
      ),
    }),
};

describe('bits per byte', () => {
  it.each(['last_assistant_message', 'all_assistant_messages'] as const)(
    'of a file and of a forward pass are the same number: %s',
    async (trainOn) => {
      const row = {
        messages: [
          { role: 'user', content: 'Größe?' },
          { role: 'assistant', content: 'Zwölf 🦊' },
          { role: 'user', content: 'Sure?' },
          { role: 'assistant', content: 'Ja' },
        ],
      };
      const { corpus } = await lastValueFrom(
        of(row).pipe(likelihood({ sampler, renderer, trainOn, accuracy: false }), summarize()),
      );
      const data = await lastValueFrom(of(row).pipe(toDatums(renderer, { trainOn }), toArray()));
      const outputs = data.map(({ modelInput }) => ({
        logprobs: TensorData.from(
          Float32Array.from({ length: modelInput.length }, (_, place) => logprobAt(place + 1)),
          'float32',
        ),
      }));
      expect(corpus!.bitsPerByte).toBeCloseTo(bitsPerByte(data, outputs, renderer.tokenizer), 12);
      const bytes = Buffer.byteLength(trainOn === 'last_assistant_message' ? 'Ja' : 'Zwölf 🦊Ja');
      expect(corpus!.bytes).toBe(bytes);
    },
  );
});
