import { type Observable, of } from 'rxjs';
import { ByteTokenizer, getRenderer } from '../../../src/chat/index.js';
import type { SampleOptions } from '../../../src/client/SamplingClient.js';
import type { SampleResponse } from '../../../src/wire/sampling.js';

const tokenizer = new ByteTokenizer();
export const renderer = getRenderer('tinker_rx_bytes', tokenizer);
const END = tokenizer.tokenId('<|end|>');

export interface Asked {
  /** The prompt's text, special tokens left out. */
  readonly text: string;
  readonly seed: number;
  /** Which of the samples of one request it is. */
  readonly place: number;
}

/** A sampler that says what a function tells it to; `asked` has every request. */
export function scriptedSampler(say: (asked: Asked) => string) {
  const asked: SampleOptions[] = [];
  const sample = (options: SampleOptions): Observable<SampleResponse> => {
    asked.push(options);
    const text = tokenizer.decode(options.prompt.toInts(), { skipSpecialTokens: true });
    const sequences = Array.from({ length: options.numSamples ?? 1 }, (_, place) => {
      const tokens = Int32Array.from([
        ...tokenizer.encode(say({ text, seed: options.samplingParams?.seed ?? 0, place })),
        END,
      ]);
      return { stopReason: 'stop' as const, tokens, logprobs: new Float32Array(tokens.length).fill(-0.5) };
    });
    return of({ sequences, promptCacheHitTokens: 0 });
  };
  return { asked, sample };
}
export type ScriptedSampler = Pick<ReturnType<typeof scriptedSampler>, 'sample'>;
