import { concat, from, lastValueFrom, NEVER, of, Subject, take, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { interleave } from '../../src/operators/data/interleave.js';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { firehose, keepsContract } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const mixed = (...args: Parameters<typeof interleave<string>>) =>
  lastValueFrom(interleave(...args).pipe(toArray())).then((values) => values.join(''));

const many = (value: string, count: number) => from(value.repeat(count));

describe('interleave', () => {
  keepsContract({ operator: () => (source) => interleave([{ source }]), readsForThree: 3 });

  it(
    'mixes by weight, and never lets speed decide who is next',
    marbles((m) => {
      const a = m.cold('       -a-a-a-|            ');
      const b = m.cold('       ----------b----b-|  ');
      const aSubs = '          ^------!            ';
      const bSubs = '          ^----------------!  ';
      const expected = '       -a--------(baa)b-|  ';
      m.expect(interleave([{ source: a, weight: 2 }, { source: b }])).toBeObservable(expected);
      m.expect(a).toHaveSubscriptions(aSubs);
      m.expect(b).toHaveSubscriptions(bSubs);
    }),
  );

  it('spreads by turns, and lets the rest share what is left', async () => {
    const datasets = [{ source: many('a', 8), weight: 2 }, { source: many('b', 6) }];
    expect(await mixed(datasets)).toBe('abaabaabaababb');
  });

  it('ends with the first dataset when told to', async () => {
    const datasets = [{ source: many('a', 8), weight: 2 }, { source: many('b', 6) }];
    expect(await mixed(datasets, { until: 'first' })).toBe('abaabaabaaba');
  });

  it('draws at random with a seed, in the proportion of the weights and the same every time', async () => {
    const datasets = [{ source: many('a', 9000), weight: 3 }, { source: many('b', 9000) }];
    const first = await mixed(datasets, { seed: 5, until: 'first' });
    expect(first.split('a').length / first.length).toBeCloseTo(0.75, 1);
    expect(await mixed(datasets, { seed: 5, until: 'first' })).toBe(first);
    expect(await mixed(datasets, { seed: 6, until: 'first' })).not.toBe(first);
  });

  it(
    'passes a single dataset through',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const expected = '       -a-b-|';
      m.expect(interleave([{ source }])).toBeObservable(expected);
    }),
  );

  it(
    'completes without datasets, and with empty ones',
    marbles((m) => {
      const empty = m.cold('   --|');
      m.expect(interleave([])).toBeObservable('|');
      m.expect(interleave([{ source: empty }, { source: empty }])).toBeObservable('--|');
    }),
  );

  it(
    'stays silent while the one whose turn it is does',
    marbles((m) => {
      const a = m.cold('       ----');
      const b = m.cold('       b-b-');
      const unsub = '          ---!';
      const subs = '           ^--!';
      m.expect(interleave([{ source: a }, { source: b }]), unsub).toBeObservable('----');
      m.expect(a).toHaveSubscriptions(subs);
      m.expect(b).toHaveSubscriptions(subs);
    }),
  );

  it(
    'fails with any dataset, and stops the others',
    marbles((m) => {
      const a = m.cold('       -a-----');
      const b = m.cold('       ---#   ');
      const aSubs = '          ^--!   ';
      const expected = '       -a-#   ';
      m.expect(interleave([{ source: a }, { source: b }])).toBeObservable(expected);
      m.expect(a).toHaveSubscriptions(aSubs);
    }),
  );

  it(
    'starts afresh for every subscriber',
    marbles((m) => {
      const a = m.cold('       -a-a-|');
      const b = m.cold('       -b---|');
      const result = interleave([{ source: a }, { source: b, weight: 3 }], { seed: 1 });
      m.scheduler.expectObservable(result).toEqual(result);
    }),
  );

  it('stops synchronous datasets when its subscriber has enough', () => {
    const { source, read } = firehose();
    const seen: string[] = [];
    interleave([{ source }])
      .pipe(take(3))
      .subscribe((value) => seen.push(value));
    expect(seen).toStrictEqual(['0', '1', '2']);
    expect(read()).toBe(3);
  });

  it('keeps only a few values ready of a dataset that waits for the others', () => {
    const fast = gated();
    const slow = new Subject<number>();
    const seen: number[] = [];
    interleave([{ source: fast.source }, { source: slow }], { prefetch: 4 }).subscribe((value) => seen.push(value));
    expect(fast.sent()).toBe(1 + 4);
    slow.next(-1);
    expect(seen).toStrictEqual([0, -1, 1]);
    expect(fast.sent()).toBe(2 + 4);
  });

  it('emits nothing while what lies downstream is full', () => {
    const fast = gated();
    const inner = new Subject<never>();
    let started = 0;
    const project = () => {
      started++;
      return started === 1 ? inner : NEVER;
    };
    interleave([{ source: fast.source }], { prefetch: 4 })
      .pipe(mergeMapWeighted(project, { weight: () => 1, budget: 0 }))
      .subscribe();
    expect(started).toBe(1);
    expect(fast.sent()).toBe(1 + 4);
    inner.complete();
    expect(started).toBe(2);
    expect(fast.sent()).toBe(2 + 4);
  });

  it('goes through a dataset that comes in parts', async () => {
    const parts = concat(of('a'), of('b'));
    expect(await mixed([{ source: parts }, { source: of('c') }])).toBe('acb');
  });

  it.each([0, -1, NaN, Infinity])('refuses weight %s', (weight) => {
    expect(() => interleave([{ source: NEVER, weight }])).toThrow(
      new RangeError(`weight must be finite and > 0, got ${weight}`),
    );
  });

  it('refuses prefetch 0', () => {
    expect(() => interleave([], { prefetch: 0 })).toThrow(new RangeError('prefetch must be >= 1, got 0'));
  });
});
