import { map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { evaluateEvery } from '../../src/operators/evaluateEvery.js';
import type { Datum } from '../../src/wire/datum.js';
import { type firehose, keepsContract } from './contract.js';
import { marbles } from './marbles.js';

const rows = (source: ReturnType<typeof firehose>['source']) => source.pipe(map((): readonly Datum[] => []));
const evaluate = () => of({ accuracy: 1 });

// What train does with the marks is in train.test.ts.
describe('evaluateEvery', () => {
  keepsContract({
    operator: () => (source) => rows(source).pipe(evaluateEvery({ steps: 2, evaluate })),
    readsForThree: 3,
  });

  it(
    'marks every so many batches, without holding any back',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--------!';
      const expected = '       -0-1-0-1-|';
      const result = rows(source).pipe(
        evaluateEvery({ steps: 2, evaluate }),
        map((batch) => String(batch.marks.length)),
      );
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'marks the last batch too when told to',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|');
      const expected = '       ---0-1-(1|)';
      const result = rows(source).pipe(
        evaluateEvery({ steps: 2, evaluate, atEnd: true }),
        map((batch) => String(batch.marks.length)),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'marks a single batch with steps 1',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const expected = '       -x-|';
      const x = { data: [], position: 0, marks: [{ type: 'evaluation', evaluate } as const] };
      m.expect(rows(source).pipe(evaluateEvery({ steps: 1, evaluate }))).toBeObservable(expected, { x });
    }),
  );

  it.each([0, 1.5])('refuses steps %s', (steps) => {
    expect(() => evaluateEvery({ steps, evaluate })).toThrow(
      new RangeError(`steps must be an integer >= 1, got ${steps}`),
    );
  });
});
