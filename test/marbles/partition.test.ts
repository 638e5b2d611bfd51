import fc from 'fast-check';
import { map, NEVER, type Observable, of, take, timer, VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { partition } from '../../src/operators/flow/partition.js';
import { keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const byCase = (letter: string) => (letter === letter.toLowerCase() ? 'small' : 'large');
const pass = <T>(each: Observable<T>) => each;
const strings = (each: Observable<string>) => each;
const said = map(({ pipeline, value }: { pipeline: string; value: unknown }) => `${pipeline} ${String(value)}`);

describe('partition', () => {
  keepsContract({
    operator: () => partition(byCase, { small: strings, large: strings }),
    readsForThree: 3,
    throwing: () => partition(throwing, { small: pass, large: pass }),
  });

  it(
    'sends each value to the pipeline of its key',
    marbles((m) => {
      const source = m.cold('  -a-b-C-D-|');
      const subs = '           ^--------!';
      const expected = '       -p-q---r-|';
      const result = source.pipe(partition(byCase, { small: pass, large: batch({ size: 2 }) }), said);
      m.expect(result).toBeObservable(expected, { p: 'small a', q: 'small b', r: 'large C,D' });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'drops the values of a pipeline that has left',
    marbles((m) => {
      const source = m.cold('  -a-B-c-|');
      const expected = '       -p-q---|';
      const result = source.pipe(partition(byCase, { small: take(1), large: pass }), said);
      m.expect(result).toBeObservable(expected, { p: 'small a', q: 'large B' });
    }),
  );

  it(
    'fails for a key without a pipeline, and leaves the source',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const subs = '           ^!';
      const expected = '       -#';
      const key = () => 'c' as 'a';
      const failure = new RangeError("partition has no pipeline 'c' for a value; it has a, b");
      m.expect(source.pipe(partition(key, { a: strings, b: strings }))).toBeObservable(expected, {}, failure);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('pauses the source when a pipeline is full', () => {
    const { source, sent } = gated();
    const stuck = concatMapAhead(() => NEVER, { ahead: 0 });
    const byTurns = (_: number, index: number) => (index % 2 === 0 ? 'a' : 'b');
    source
      .pipe(partition(byTurns, { a: pass, b: stuck }, { buffer: 3 }))
      .subscribe()
      .unsubscribe();
    // One in the pipeline that is stuck, and three that wait for it: every second value.
    expect(sent()).toBe(8);
  });

  it('gives every value to one pipeline, in order, however fast each is', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(3), { maxLength: 40 }),
        fc.array(fc.nat(5), { minLength: 4, maxLength: 4 }),
        (keys, delays) => {
          const scheduler = new VirtualTimeScheduler();
          const slow = (delayMs: number) =>
            concatMapAhead(
              (value: number) => (delayMs === 0 ? of(0) : timer(delayMs, scheduler)).pipe(map(() => value)),
              {
                ahead: 0,
              },
            );
          const pipelines = Object.fromEntries(delays.map((delayMs, place) => [`p${place}`, slow(delayMs)]));
          const seen = delays.map((): number[] => []);
          gated(keys.length)
            .source.pipe(partition((value) => `p${keys[value]}`, pipelines, { buffer: 2 }))
            .subscribe(({ pipeline, value }) => seen[Number(pipeline.slice(1))]!.push(value));
          scheduler.flush();
          const expected = delays.map((_, place) => keys.flatMap((key, value) => (key === place ? [value] : [])));
          expect(seen).toStrictEqual(expected);
        },
      ),
      { numRuns: 300, seed: 31 },
    );
  });
});
