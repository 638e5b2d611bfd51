import { concat, concatMap, delay, EMPTY, from, map, NEVER, of, Subject, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const one = () => 1;
const later = (delayMs: number) => (value: string) => timer(delayMs).pipe(map(() => value));

describe('mergeMapWeighted', () => {
  keepsContract({
    operator: () => mergeMapWeighted((value: string) => of(value), { weight: one, budget: 0 }),
    readsForThree: 3,
    throwing: () => mergeMapWeighted(throwing, { weight: one, budget: 0 }),
  });

  it(
    'admits while the balance is >= 0, then waits for weight to come back',
    marbles((m) => {
      const source = m.cold('  -a-b-c----------|');
      const a = m.cold('        ------x|        ');
      const b = m.cold('          -------y|     ');
      const c = m.cold('               --z|     ');
      const subs = '           ^---------------!';
      const aSubs = '          -^------!        ';
      const bSubs = '          ---^-------!     ';
      const cSubs = '          --------^--!     ';
      const expected = '       -------x--(yz)--|';
      const inners = { a, b, c };
      const result = source.pipe(
        mergeMapWeighted((value) => inners[value as keyof typeof inners], { weight: one, budget: 1 }),
      );
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(a).toHaveSubscriptions(aSubs);
      m.expect(b).toHaveSubscriptions(bSubs);
      m.expect(c).toHaveSubscriptions(cSubs);
    }),
  );

  it(
    'runs one at a time with budget 0 and weight 1',
    marbles((m) => {
      const source = m.cold('  (abc|)      ');
      const expected = '       --a-b-(c|)  ';
      const result = source.pipe(mergeMapWeighted(later(2), { weight: one, budget: 0 }));
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'lets one value overshoot the budget, then blocks until the balance is back at 0',
    marbles((m) => {
      const weights = { a: 2, b: 100, c: 1, d: 1 };
      const source = m.cold('  (abcd|)       ');
      // a (2 of 10), then b overshoots to 102; a gives back 2 at 2 ms, still 100 out; b ends at 8 ms: c and d go.
      const expected = '       --a-----b-(cd|)';
      const waits = { a: 2, b: 8, c: 2, d: 2 };
      const project = (value: string) => timer(waits[value as 'a']).pipe(map(() => value));
      const result = source.pipe(mergeMapWeighted(project, { weight: (value) => weights[value as 'a'], budget: 10 }));
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'never lets a light value overtake a heavy one that waits',
    marbles((m) => {
      const weights = { a: 6, b: 6, c: 6, d: 0 };
      const source = m.cold('  (abcd|)    ');
      // a and b are in (12 of 10), c waits for a, and d, which weighs nothing, waits behind c.
      const expected = '       ----(ab)(cd|)';
      const result = source.pipe(
        mergeMapWeighted(later(4), {
          weight: (value) => weights[value as 'a'],
          budget: 10,
        }),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'keeps to the concurrency, whatever is left of the budget',
    marbles((m) => {
      const source = m.cold('  (abc|)    ');
      const expected = '       ----(ab)(c|)';
      const result = source.pipe(mergeMapWeighted(later(4), { weight: one, budget: 1000, concurrency: 2 }));
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'admits more at once when the budget grows, and none while it is negative',
    marbles((m) => {
      const source = m.cold('  abcd|           ', undefined);
      const budget = m.cold('  z----y----x-----', { z: 0, y: -1, x: 5 });
      const expected = '       --a-b-c-----(d|)';
      const result = source.pipe(mergeMapWeighted(later(2), { weight: one, budget }));
      m.expect(result).toBeObservable(expected);
      m.expect(budget).toHaveSubscriptions('^-----------!');
    }),
  );

  it(
    'admits nothing before the first budget',
    marbles((m) => {
      const source = m.cold('  ab|    ');
      const budget = m.cold('  ----z|', { z: 5 });
      const expected = '       ----(ab|)';
      m.expect(source.pipe(mergeMapWeighted((value) => of(value), { weight: one, budget }))).toBeObservable(expected);
    }),
  );

  it(
    'fails when the budget fails or is not a number',
    marbles((m) => {
      const source = m.cold('  a---');
      const failing = m.cold(' -#');
      const expected = '       -#';
      m.expect(source.pipe(mergeMapWeighted(() => NEVER, { weight: one, budget: failing }))).toBeObservable(expected);
      m.expect(
        source.pipe(mergeMapWeighted(() => NEVER, { weight: one, budget: timer(1).pipe(map(() => NaN)) })),
      ).toBeObservable(expected, undefined, new RangeError('budget must be a number, got NaN'));
    }),
  );

  it(
    'passes an error of an inner at once and stops the others',
    marbles((m) => {
      const source = m.cold('  -a-b-----|');
      const a = m.cold('        --------x|');
      const b = m.cold('          --#    ');
      const subs = '           ^----!    ';
      const aSubs = '          -^---!    ';
      const expected = '       -----#    ';
      const inners = { a, b };
      const result = source.pipe(mergeMapWeighted((value) => inners[value as 'a'], { weight: one, budget: 9 }));
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(a).toHaveSubscriptions(aSubs);
    }),
  );

  it(
    'fails when project or weight throws, also for a value that had to wait',
    marbles((m) => {
      const source = m.cold('  -a-b-----|');
      const subs = '           ^-----!   ';
      const expected = '       ------#   ';
      const failure = new Error('no');
      const project = (value: string) => {
        if (value === 'b') throw failure;
        return timer(5).pipe(concatMap(() => EMPTY));
      };
      const weigh = (value: string) => {
        if (value === 'b') throw failure;
        return 1;
      };
      m.expect(source.pipe(mergeMapWeighted(project, { weight: one, budget: 0 }))).toBeObservable(
        expected,
        undefined,
        failure,
      );
      m.expect(source).toHaveSubscriptions([subs, subs]);
      m.expect(
        source.pipe(mergeMapWeighted(() => timer(5).pipe(concatMap(() => EMPTY)), { weight: weigh, budget: 0 })),
      ).toBeObservable(expected, undefined, failure);
    }),
  );

  it(
    'stops the source and every inner when unsubscribed, and admits nothing more',
    marbles((m) => {
      const source = m.cold('  -a-b-c------|');
      const a = m.cold('        --x--------|');
      const b = m.cold('          ---------|');
      const unsub = '          ------!      ';
      const subs = '           ^-----!      ';
      const aSubs = '          -^----!      ';
      const bSubs = '          ---^--!      ';
      const expected = '       ---x---------';
      const inners = { a, b };
      const result = source.pipe(mergeMapWeighted((value) => inners[value as 'a'], { weight: one, budget: 1 }));
      m.expect(result, unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(a).toHaveSubscriptions(aSubs);
      m.expect(b).toHaveSubscriptions(bSubs);
    }),
  );

  it(
    'completes only when the last inner has',
    marbles((m) => {
      const source = m.cold('  -a|     ');
      const expected = '       -----(a|)';
      const result = source.pipe(mergeMapWeighted((value) => of(value).pipe(delay(4)), { weight: one, budget: 0 }));
      m.expect(result).toBeObservable(expected);
    }),
  );

  it.each([-1, NaN, Infinity])('fails when a value weighs %s', (price) => {
    const errors: unknown[] = [];
    of(1)
      .pipe(mergeMapWeighted(() => EMPTY, { weight: () => price, budget: 1 }))
      .subscribe({ error: (error) => errors.push(error) });
    expect(errors).toStrictEqual([new RangeError(`weight must be finite and >= 0, got ${price}`)]);
  });

  it('refuses concurrency 0 and a budget that is not a number', () => {
    expect(() => mergeMapWeighted(() => EMPTY, { weight: one, budget: 1, concurrency: 0 })).toThrow(RangeError);
    expect(() => mergeMapWeighted(() => EMPTY, { weight: one, budget: NaN })).toThrow(RangeError);
  });

  it('gives project and weight the index, each once a value and in order', () => {
    const calls: string[] = [];
    from(['a', 'b'])
      .pipe(
        mergeMapWeighted(
          (value, index) => {
            calls.push(`project ${value}${index}`);
            return EMPTY;
          },
          {
            weight: (value, index) => {
              calls.push(`weight ${value}${index}`);
              return 1;
            },
            budget: 0,
          },
        ),
      )
      .subscribe();
    expect(calls).toStrictEqual(['weight a0', 'project a0', 'weight b1', 'project b1']);
  });

  it('drains a long queue of synchronous inners without a deep stack', () => {
    const first = new Subject<number>();
    let seen = 0;
    concat(of(-1), from(Array.from({ length: 100_000 }, (_, place) => place)))
      .pipe(mergeMapWeighted((value) => (value < 0 ? first : of(value)), { weight: one, budget: 0 }))
      .subscribe(() => seen++);
    expect(seen).toBe(0);
    first.complete();
    expect(seen).toBe(100_000);
  });
});
