import { map, type Observable, take, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer } from '../../src/chat/tokenizer/index.js';
import type { SampleOptions } from '../../src/client/SamplingClient.js';
import { sampleInPieces, type SamplePiece } from '../../src/client/sampling/sampleInPieces.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import type { SampleResponse } from '../../src/wire/sampling.js';
import { marbles } from './marbles.js';

const END = 256;
const tokenizer = new ByteTokenizer();
const prompt = ModelInput.fromInts([1, 2]);

/** A model that continues every prompt with the same text, two frames a request. */
function model(text: string, name = 'm', { context = 1000 } = {}) {
  const all = [...tokenizer.encode(text), END];
  const asked: SampleOptions[] = [];
  let cancelled = 0;
  const sample = (options: SampleOptions): Observable<SampleResponse> => {
    asked.push(options);
    const { maxTokens = Infinity, stop } = options.samplingParams ?? {};
    const at = options.prompt.length - prompt.length;
    const room = Math.min(maxTokens, context - options.prompt.length);
    const tokens = Int32Array.from(all.slice(at, at + room));
    const strings = (stop ?? []) as readonly string[];
    const found = strings.some((text) => tokenizer.decode(tokens).includes(text));
    const response: SampleResponse = {
      sequences: [
        {
          stopReason: found || tokens.at(-1) === END ? 'stop' : 'length',
          tokens,
          logprobs: Float32Array.from(tokens, (_, index) => -(at + index)),
        },
      ],
      promptCacheHitTokens: at,
    };
    let settled = false;
    const answer = timer(2).pipe(
      map(() => {
        settled = true;
        return response;
      }),
    );
    return Object.assign(answer, { cancel: () => settled || cancelled++ });
  };
  return { sampler: { sample, name }, asked, cancelled: () => cancelled };
}
const show = map(show1);

describe('sampleInPieces', () => {
  it(
    'continues a sample until it stops, each piece from the prompt and all pieces before it',
    marbles((m) => {
      const { sampler, asked } = model('hello');
      const expected = '--a-b-(c|)';
      const pieces = sampleInPieces(sampler, { prompt, tokens: 2, samplingParams: { seed: 7 } });
      m.expect(pieces.pipe(show)).toBeObservable(expected, { a: 'he:', b: 'll:', c: 'o<|end|>:stop' });
      m.flush();
      expect(asked.map((options) => options.prompt.toInts().length)).toEqual([2, 4, 6]);
      expect(asked.map(({ samplingParams }) => samplingParams?.seed)).toEqual([7, 8, 9]);
    }),
  );

  it(
    'counts maxTokens over all pieces',
    marbles((m) => {
      const { sampler, asked } = model('hello');
      const pieces = sampleInPieces(sampler, { prompt, tokens: 2, samplingParams: { maxTokens: 3 } });
      m.expect(pieces.pipe(show)).toBeObservable('--a-(b|)', { a: 'he:', b: 'l:length' });
      m.flush();
      expect(asked.map(({ samplingParams }) => samplingParams?.maxTokens)).toEqual([2, 1]);
    }),
  );

  it(
    'ends where the context does',
    marbles((m) => {
      const { sampler } = model('hello', 'm', { context: 5 });
      const pieces = sampleInPieces(sampler, { prompt, tokens: 2 });
      m.expect(pieces.pipe(show)).toBeObservable('--a-(b|)', { a: 'he:', b: 'l:length' });
    }),
  );

  it(
    'finds a stop string that begins in one piece and ends in the next, and keeps nothing after it',
    marbles((m) => {
      const { sampler } = model('one. two. three');
      const stop = ['. t'];
      const pieces = sampleInPieces(sampler, { prompt, tokens: 4, samplingParams: { stop }, tokenizer });
      m.expect(pieces.pipe(map((piece) => [...piece.tokens].length + show1(piece)))).toBeObservable('--a-(b|)', {
        a: '4one.:',
        b: '2 t:stop',
      });
    }),
  );

  it(
    'a newer sampler takes over at a boundary, and each piece says which it came from',
    marbles((m) => {
      const old = model('hello', 'old');
      const young = model('HELLO', 'young');
      let newest = old.sampler;
      const pieces = sampleInPieces(() => newest, { prompt, tokens: 3, samplingParams: { maxTokens: 5 } });
      m.cold('-a').subscribe(() => (newest = young.sampler));
      m.expect(pieces.pipe(map(({ tokens, sampler }) => tokenizer.decode(tokens) + sampler.name))).toBeObservable(
        '--a-(b|)',
        { a: 'helold', b: 'LOyoung' },
      );
    }),
  );

  it(
    'unsubscribing cancels the request in flight; subscribing again begins anew',
    marbles((m) => {
      const { sampler, asked, cancelled } = model('hello');
      const pieces = sampleInPieces(sampler, { prompt, tokens: 2 }).pipe(show);
      m.expect(pieces, '^--!').toBeObservable('--a-', { a: 'he:' });
      m.expect(pieces.pipe(take(1))).toBeObservable('--(a|)', { a: 'he:' });
      m.flush();
      expect([asked.length, cancelled()]).toEqual([3, 1]);
    }),
  );

  it(
    'a failure comes after the pieces before it',
    marbles((m) => {
      const { sampler } = model('hello');
      let calls = 0;
      const sample = (options: SampleOptions) =>
        calls++ === 0 ? sampler.sample(options) : throwError(() => new Error('gone'));
      m.expect(sampleInPieces({ sample }, { prompt, tokens: 2 }).pipe(show)).toBeObservable(
        '--(a#)',
        { a: 'he:' },
        new Error('gone'),
      );
    }),
  );

  it('refuses pieces of no tokens, and stop strings it could not find', () => {
    const { sampler } = model('');
    expect(() => sampleInPieces(sampler, { prompt, tokens: 0 })).toThrow('tokens must be an integer ≥ 1, got 0');
    expect(() => sampleInPieces(sampler, { prompt, tokens: 1, samplingParams: { stop: ['x'] } })).toThrow(
      'needs a tokenizer',
    );
  });
});

function show1({ tokens, stopReason }: SamplePiece): string {
  return `${tokenizer.decode(tokens)}:${stopReason ?? ''}`;
}
