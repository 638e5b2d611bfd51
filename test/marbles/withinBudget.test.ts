import { concatMap, delay, map, NEVER, of, Subject, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Budget, budgetSpent, type Cost, withinBudget } from '../../src/evals/index.js';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { keepsContract } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const cost = (tokens: number, usd?: number): Cost => ({
  ...{ prompt: 0, cached: 0, sampled: tokens, trained: 0, tokens, usd, unpriced: [], pricesAsOf: '2026-01-01' },
});

describe('withinBudget', () => {
  keepsContract({ operator: () => withinBudget({ cost$: NEVER, budget: { tokens: 1 } }), readsForThree: 3 });

  it(
    'ends the data when the budget is spent, and says why',
    marbles((m) => {
      const reasons: string[] = [];
      const source = m.cold('  -a-b-c-d|');
      const cost$ = m.cold('   a-b-c', { a: cost(0), b: cost(600), c: cost(1200) });
      const expected = '       -a-b|';
      const subs = '           ^---!';
      const options = {
        cost$,
        budget: { tokens: 1000 },
        onSpent: ({ reason }: { reason: string }) => reasons.push(reason),
      };
      m.expect(source.pipe(withinBudget(options))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(reasons).toStrictEqual(['the budget of 1,000 tokens is spent: 1,200 tokens']);
    }),
  );

  it.each([
    { data: 'pauses', source: () => gated(8).source.pipe(map((place) => 'abcdefgh'[place]!)) },
    { data: 'comes all at once', source: () => of(...'abcdefgh') },
  ])('is overshot by what is in flight and by nothing else, where data $data', ({ source }) => {
    marbles((m) => {
      // Two at a time, 100 tokens each, told when each is done.
      const spent$ = new Subject<Cost>();
      let tokens = 0;
      const spend = (value: string) =>
        of(value).pipe(
          delay(2),
          tap(() => spent$.next(cost((tokens += 100)))),
        );
      const result = source().pipe(
        withinBudget({ cost$: spent$, budget: { tokens: 300 } }),
        mergeMapWeighted(spend, { weight: () => 1, budget: Infinity, concurrency: 2 }),
      );
      // When c is done the budget is spent; d was in flight, e is not begun.
      const seen: string[] = [];
      result.subscribe({ next: (value) => seen.push(value), complete: () => seen.push('|') });
      m.flush();
      expect([seen.join(''), tokens]).toStrictEqual(['abcd|', 400]);
    })();
  });

  it('takes dollars, as far as there are prices', () => {
    const reasons: string[] = [];
    of(cost(10), cost(20, 0.5), cost(30, 2.25))
      .pipe(concatMap((each) => budgetSpent(of(each), { usd: 2 })))
      .subscribe(({ reason }) => reasons.push(reason));
    expect(reasons).toStrictEqual(['the budget of $2 is spent: $2.2500']);
  });

  it('refuses a budget that nothing fits in', () => {
    for (const budget of [{ usd: 0 }, { tokens: -1 }, { tokens: NaN }] as Budget[])
      expect(() => budgetSpent(NEVER, budget)).toThrow(RangeError);
  });
});
