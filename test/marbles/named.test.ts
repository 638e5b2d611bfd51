import { concatMap, interval, map, of, take, timer } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  batch,
  concatMapAhead,
  findBottleneck,
  flow$,
  type FlowReport,
  mergeMapWeighted,
  named,
} from '../../src/operators/index.js';
import { firehose, keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

/** Runs a pipeline for so many seconds while `flow$` is watched, and gives the reports. */
const watch = (run: () => { unsubscribe(): void }, seconds: number): (readonly FlowReport[])[] => {
  const seen: (readonly FlowReport[])[] = [];
  if (!vi.isFakeTimers()) vi.useFakeTimers();
  const watching = flow$.subscribe((reports) => seen.push(reports));
  const running = run();
  vi.advanceTimersByTime(seconds * 1000);
  watching.unsubscribe();
  running.unsubscribe();
  return seen;
};
afterEach(() => void vi.useRealTimers());

describe('named', () => {
  keepsContract({
    operator: () =>
      named(
        'map',
        map((value) => value),
      ),
    readsForThree: 3,
    throwing: () => named('map', map(throwing)),
  });

  it(
    'passes values, errors and completion unchanged',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const subs = '           ^----!';
      const expected = '       -a-b-|';
      m.expect(source.pipe(named('here'))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(m.cold('-a-#').pipe(named('here', batch({ size: 2 })))).toBeObservable('---#');
    }),
  );

  it('keeps the gate of the operator downstream', () => {
    const { source, sent } = gated();
    source
      .pipe(
        named('rows'),
        named(
          'slow',
          concatMapAhead(() => timer(1e9), { ahead: 1 }),
        ),
      )
      .subscribe()
      .unsubscribe();
    expect(sent()).toBe(2);
  });

  it('says which operator is the bottleneck, and which ones wait for it', () => {
    const seen = watch(
      () =>
        gated()
          .source.pipe(
            named('rows'),
            named(
              'tokenize',
              mergeMapWeighted((row) => of(row), { weight: () => 1, budget: 8 }),
            ),
            named(
              'judge',
              mergeMapWeighted((row) => timer(400).pipe(map(() => row)), { weight: () => 1, budget: 3 }),
            ),
            named('log'),
          )
          .subscribe(),
      2,
    );
    const last = seen.at(-1)!;
    expect(findBottleneck(last)?.name).toBe('judge');
    const [log, judge, tokenize, rows] = last;
    expect([log, judge, tokenize, rows].map((each) => each?.name)).toStrictEqual(['log', 'judge', 'tokenize', 'rows']);
    expect(rows).toMatchObject({ into: [tokenize!.id], gatedShare: 1, busyShare: 0, ended: false });
    expect(tokenize).toMatchObject({ into: [judge!.id], gatedShare: 1, busyShare: 0 });
    expect(judge).toMatchObject({ into: [log!.id], gatedShare: 0, busyShare: 1, itemsIn: 20, itemsOut: 16 });
    expect(log).toMatchObject({ into: [], gatedShare: 0, busyShare: 0, itemsIn: 16, itemsOut: 16 });
  });

  it('counts the values that wait in an operator whose source does not pause', () => {
    const slow = concatMapAhead(() => timer(1e9), { ahead: 0 });
    const [first] = watch(() => interval(90).pipe(named('slow', slow)).subscribe(), 1);
    expect(first).toMatchObject([{ name: 'slow', itemsIn: 11, itemsOut: 0, waiting: 10 }]);
  });

  it('counts the time in which the code of an operator runs, without that of those downstream', () => {
    const work = (ms: number) =>
      map((value: number) => {
        vi.setSystemTime(Date.now() + ms);
        return value;
      });
    const [first] = watch(
      () =>
        interval(300)
          .pipe(named('a', work(30)), named('b', work(10)))
          .subscribe(),
      1,
    );
    const [b, a] = first!;
    // Three values, each of which takes 40 ms more than the timers know of.
    expect(a!.busyShare).toBeCloseTo(90 / 1120);
    expect(b!.busyShare).toBeCloseTo(30 / 1120);
  });

  it('reports an operator that has ended once more, and is silent when none runs', () => {
    const seen = watch(() => interval(300).pipe(take(2), named('short')).subscribe(), 5);
    expect(seen).toMatchObject([[{ name: 'short', itemsIn: 2, itemsOut: 2, ended: true }]]);
  });

  it('counts nothing while nobody watches', () => {
    vi.useFakeTimers();
    const running = interval(100).pipe(named('alone')).subscribe();
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(5000);
    const seen = watch(() => running, 1);
    expect(seen).toMatchObject([[{ name: 'alone', itemsIn: 10 }]]);
  });

  it('reports a named operator inside another one as part of it', () => {
    const inside = named(
      'inside',
      concatMapAhead((value: number) => of(value), { ahead: 0 }),
    );
    const seen = watch(
      () =>
        interval(100)
          .pipe(named('outside', (source) => source.pipe(inside)))
          .subscribe(),
      1,
    );
    expect(seen.flat().map(({ name }) => name)).toStrictEqual(['outside']);
  });

  it('stops a synchronous source behind a named operator', () => {
    const { source, read } = firehose();
    source
      .pipe(
        named('rows'),
        concatMap((value) => of(value)),
        named('all'),
        take(3),
      )
      .subscribe();
    expect(read()).toBe(3);
  });
});
