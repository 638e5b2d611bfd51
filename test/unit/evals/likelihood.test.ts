import { from, lastValueFrom, of, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { bitsPerByte } from '../../../src/chat/index.js';
import { AuthenticationError } from '../../../src/client/errors.js';
import type { SampleOptions } from '../../../src/client/SamplingClient.js';
import { likelihood, summarize } from '../../../src/evals/index.js';
import { type FailurePolicy, toDatums } from '../../../src/operators/index.js';
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

describe('a row that cannot be measured', () => {
  const row = {
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'ho' },
    ],
  };
  const failing = (failures: readonly Error[]) => {
    let asked = 0;
    return {
      sample: (options: SampleOptions) => {
        const error = failures[asked++];
        return error === undefined ? sampler.sample(options) : throwError(() => error);
      },
    };
  };
  const records = (failures: readonly Error[], onFailure?: FailurePolicy<unknown>) =>
    lastValueFrom(
      from([row, { ...row, id: 'second' }]).pipe(
        likelihood({
          sampler: failing(failures),
          renderer,
          concurrency: 1,
          accuracy: false,
          ...(onFailure === undefined ? {} : { onFailure }),
        }),
        toArray(),
      ),
    );

  it('is a failure of its record by default', async () => {
    expect(await records([new Error('no')])).toMatchObject([
      { failures: [{ message: 'no' }], samples: [] },
      { failures: [] },
    ]);
  });

  it("ends the stream under 'fail', and with a failure that every row would meet", async () => {
    await expect(records([new Error('no')], 'fail')).rejects.toThrow('no');
    const refused = new AuthenticationError('a refused key', { status: 401, headers: {}, body: '' });
    await expect(records([refused])).rejects.toBe(refused);
  });

  it('is measured again, and a dead letter if that fails too', async () => {
    const letters: unknown[] = [];
    const onFailure = { retries: 1, deadLetters: (letter: unknown) => void letters.push(letter) };
    expect(await records([new Error('once')], onFailure)).toMatchObject([{ failures: [] }, { failures: [] }]);
    expect(letters).toStrictEqual([]);
    const twice = new Error('twice');
    expect(await records([new Error('once'), twice], onFailure)).toMatchObject([
      { failures: [{ message: 'twice' }] },
      {},
    ]);
    expect(letters).toStrictEqual([{ item: row, error: twice, attempts: 2 }]);
  });
});
