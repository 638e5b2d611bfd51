import { concat, delay, EMPTY, from, map, NEVER, of, Subject, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

describe('concatMapAhead', () => {
  keepsContract({
    operator: () => concatMapAhead((value: string) => of(value), { ahead: 2 }),
    readsForThree: 3,
    throwing: () => concatMapAhead(throwing, { ahead: 2 }),
  });

  it(
    'starts ahead, emits in order, and starts the next when a turn ends',
    marbles((m) => {
      const source = m.cold('  -a-b-c-----------|');
      const a = m.cold('        -----w|          ');
      const b = m.cold('          -x-y|          ');
      const c = m.cold('              -----z|    ');
      const subs = '           ^----------------!';
      const aSubs = '          -^-----!          ';
      const bSubs = '          ---^---!          ';
      const cSubs = '          -------^-----!    ';
      const expected = '       ------w(xy)-z----|';
      const inners = { a, b, c };
      m.expect(source.pipe(concatMapAhead((value) => inners[value as 'a'], { ahead: 1 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(a).toHaveSubscriptions(aSubs);
      m.expect(b).toHaveSubscriptions(bSubs);
      m.expect(c).toHaveSubscriptions(cSubs);
    }),
  );

  it(
    'is concatMap with ahead 0',
    marbles((m) => {
      const source = m.cold('  (abc|)    ');
      const expected = '       --a-b-(c|)';
      const project = (value: string) => timer(2).pipe(map(() => value));
      m.expect(source.pipe(concatMapAhead(project, { ahead: 0 }))).toBeObservable(expected);
    }),
  );

  it(
    'starts all at once with ahead without limit',
    marbles((m) => {
      const source = m.cold('  (abc|)    ');
      const expected = '       --(abc|)';
      const project = (value: string) => timer(2).pipe(map(() => value));
      m.expect(source.pipe(concatMapAhead(project, { ahead: Infinity }))).toBeObservable(expected);
    }),
  );

  it(
    'counts a finished inner until its turn is over',
    marbles((m) => {
      const source = m.cold('  (abc|)  ');
      const a = m.cold('       -----x| ');
      const b = m.cold('       y|      ');
      const c = m.cold('             ---z|');
      const cSubs = '          ------^---!';
      const expected = '       -----xy--z|';
      const inners = { a, b, c };
      m.expect(source.pipe(concatMapAhead((value) => inners[value as 'a'], { ahead: 1 }))).toBeObservable(expected);
      m.expect(c).toHaveSubscriptions(cSubs);
    }),
  );

  it(
    'emits an error of an inner in its turn and starts nothing more',
    marbles((m) => {
      const source = m.cold('  -a-b---c---|');
      const a = m.cold('        -------x|');
      const b = m.cold('          y-#    ');
      const c = m.cold('                 z');
      const subs = '           ^--------!  ';
      const expected = '       --------x(y#)';
      const inners = { a, b, c };
      m.expect(source.pipe(concatMapAhead((value) => inners[value as 'a'], { ahead: 1 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(c).toHaveSubscriptions([]);
    }),
  );

  it(
    'treats a throw of project as an error of that inner',
    marbles((m) => {
      const source = m.cold('  -a-b-----|');
      const a = m.cold('        ----x|');
      const expected = '       -----x#';
      const failure = new Error('no');
      const project = (value: string) => {
        if (value === 'b') throw failure;
        return a;
      };
      m.expect(source.pipe(concatMapAhead(project, { ahead: 1 }))).toBeObservable(expected, undefined, failure);
    }),
  );

  it(
    'passes an error of the source at once, and stops the inners',
    marbles((m) => {
      const source = m.cold('  -a-#');
      const a = m.cold('        ----x|');
      const aSubs = '          -^-!';
      const expected = '       ---#';
      m.expect(source.pipe(concatMapAhead(() => a, { ahead: 1 }))).toBeObservable(expected);
      m.expect(a).toHaveSubscriptions(aSubs);
    }),
  );

  it(
    'holds an error of the source back until all before it is out, when told to',
    marbles((m) => {
      const source = m.cold('  (abc#)   ');
      const subs = '           (^!)     ';
      const expected = '       --a-b-(c#)';
      const project = (value: string) => timer(2).pipe(map(() => value));
      m.expect(source.pipe(concatMapAhead(project, { ahead: 0, delayError: true }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'stops the source and every inner when unsubscribed',
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
      m.expect(source.pipe(concatMapAhead((value) => inners[value as 'a'], { ahead: 1 })), unsub).toBeObservable(
        expected,
      );
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
      m.expect(source.pipe(concatMapAhead((value) => of(value).pipe(delay(4)), { ahead: 3 }))).toBeObservable(expected);
    }),
  );

  it(
    'stays silent while the first inner is, whatever the others do',
    marbles((m) => {
      const source = m.cold('  ab|   ');
      const expected = '       ------';
      m.expect(
        source.pipe(concatMapAhead((value) => (value === 'a' ? NEVER : of(value)), { ahead: 1 })),
      ).toBeObservable(expected);
    }),
  );

  it('keeps the order when an inner speaks up while what it held is given out', () => {
    const first = new Subject<string>();
    const second = new Subject<string>();
    const seen: string[] = [];
    from([first, second])
      .pipe(concatMapAhead((inner) => inner, { ahead: 1 }))
      .subscribe((value) => {
        seen.push(value);
        if (value === 'x') second.next('z');
      });
    second.next('x');
    second.next('y');
    first.complete();
    second.next('!');
    expect(seen.join('')).toBe('xyz!');
  });

  it('pauses an inner that runs ahead and knows of gates, and lets it go on in its turn', () => {
    const first = new Subject<number>();
    const { source, sent } = gated(500);
    const seen: number[] = [];
    of(first, source)
      .pipe(concatMapAhead((inner) => inner, { ahead: 1 }))
      .subscribe((value) => seen.push(value));
    expect(sent()).toBe(64);
    first.complete();
    expect(seen).toStrictEqual(Array.from({ length: 500 }, (_, place) => place));
  });

  it('drains a long queue of synchronous inners without a deep stack', () => {
    const first = new Subject<number>();
    let seen = 0;
    concat(of(-1), from(Array.from({ length: 100_000 }, (_, place) => place)))
      .pipe(concatMapAhead((value) => (value < 0 ? first : of(value)), { ahead: 0 }))
      .subscribe(() => seen++);
    expect(seen).toBe(0);
    first.complete();
    expect(seen).toBe(100_000);
  });

  it.each([-1, NaN])('refuses ahead %s', (ahead) => {
    expect(() => concatMapAhead(() => EMPTY, { ahead })).toThrow(new RangeError(`ahead must be >= 0, got ${ahead}`));
  });
});
