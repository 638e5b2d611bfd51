import { map } from 'rxjs';
import { describe, it } from 'vitest';
import { type EvalRecord, summarize } from '../../src/evals/index.js';
import { marbles } from './marbles.js';

const record = (score: number): EvalRecord => ({
  ...{ id: String(score), input: '', failures: [], durationMs: 0 },
  samples: [
    {
      ...{ index: 0, seed: 0, output: '', score, scores: { score }, promptTokens: 1, sampledTokens: 1 },
      ...{ stopReason: 'stop', durationMs: 0 },
    },
  ],
});
const examples = map(({ examples: count }: { readonly examples: number }) => count);

describe('summarize', () => {
  it(
    'sums up when the source completes, also one that is empty, and passes errors',
    marbles((m) => {
      const values = { a: record(1), b: record(0) };
      m.expect(m.cold('-a-b-|', values).pipe(summarize(), examples)).toBeObservable('-----(x|)', { x: 2 });
      m.expect(m.cold<EvalRecord>('-|').pipe(summarize(), examples)).toBeObservable('-(x|)', { x: 0 });
      m.expect(m.cold('-a-#', values).pipe(summarize(), examples)).toBeObservable('---#');
    }),
  );
});
