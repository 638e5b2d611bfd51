/** Operators that fan out, limit, watch or supervise, whatever gaps, limits and slow subscribers chance chooses. */
import { left, right } from 'fp-ts/lib/Either.js';
import fc from 'fast-check';
import { defer, filter, finalize, identity, map, type Observable, of, timer, type VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { ByteTokenizer, getRenderer } from '../../../src/chat/index.js';
import type { SampleOptions } from '../../../src/client/SamplingClient.js';
import {
  anomaly,
  batch,
  broadcast,
  concatMapAhead,
  decide,
  flow$,
  mergeMapWeighted,
  movingMean,
  named,
  partition,
  plateau,
  rateLimit,
  slope,
  toDecisions,
  unsettle,
} from '../../../src/operators/index.js';
import type { SampleResponse } from '../../../src/wire/sampling.js';
import { TensorData } from '../../../src/wire/tensor.js';
import { clockOf, few, gaps, leaveAt, run, RUNS, spaced, upTo } from './virtual.js';

interface Chance {
  readonly gapsMs: readonly number[];
  readonly slowMs: number;
  readonly size: number;
}
type Source = Observable<number>;

const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
/** The last `size` values up to each place. */
const windows = (values: readonly number[], size: number) =>
  values.map((_, place) => values.slice(Math.max(0, place + 1 - size), place + 1));
/** What the numbers are that metrics are taken of: they rise and fall. */
const metric = (value: number) => (value * 7) % 11;
const slowly = (ms: number, clock: VirtualTimeScheduler) =>
  concatMapAhead((value: number) => timer(ms, clock).pipe(map(() => value)), { ahead: 0 });
const isOdd = (value: number) => value % 2 === 1;

type Case = readonly [
  title: string,
  operator: (chance: Chance, clock: VirtualTimeScheduler) => (source: Source) => Observable<unknown>,
  /** What becomes of 0, 1, 2 …, in the order in which it comes where that is known. */
  wanted: (values: readonly number[], chance: Chance) => readonly unknown[],
];

const cases: readonly Case[] = [
  [
    'broadcast gives every value to each pipeline, in order',
    ({ slowMs, size }, clock) =>
      (source) =>
        source.pipe(
          broadcast({ slow: slowly(slowMs, clock), batches: batch({ size }) }, { buffer: size }),
          filter(({ pipeline }) => pipeline === 'slow'),
          map(({ value }) => value),
        ),
    (values) => values,
  ],
  [
    'partition gives every value to the pipeline of its key, in order',
    ({ slowMs, size }, clock) =>
      (source) =>
        source.pipe(
          partition(
            (value) => (isOdd(value) ? 'odd' : 'even'),
            { odd: slowly(slowMs, clock), even: filter(isOdd) },
            {
              buffer: size,
            },
          ),
          map(({ value }) => value),
        ),
    (values) => values.filter(isOdd),
  ],
  [
    'rateLimit passes every value once and in order',
    ({ slowMs, size }, clock) => rateLimit({ limit: size, perMs: slowMs + 1, scheduler: clock }),
    (values) => values,
  ],
  [
    'unsettle passes every success once and in order',
    () => (source) =>
      source.pipe(
        map((item) => (isOdd(item) ? left({ item, error: new Error('odd') }) : right(item))),
        unsettle('skip'),
      ),
    (values) => values.filter((value) => !isOdd(value)),
  ],
  [
    'movingMean gives the mean of the last values',
    ({ size }) => movingMean({ window: size, metric }),
    (values, { size }) => windows(values.map(metric), size).map(mean),
  ],
  [
    'slope gives the slope between two values',
    () => slope({ window: 2, metric }),
    (values) =>
      windows(values.map(metric), 2)
        .slice(1)
        .map(([a, b]) => b! - a!),
  ],
  [
    'anomaly gives every value above the limit',
    ({ size }) =>
      (source) =>
        source.pipe(
          anomaly({ above: size, metric }),
          map(({ value }) => value),
        ),
    (values, { size }) => values.filter((value) => metric(value) > size),
  ],
  [
    'plateau gives every value at which there was no improvement for long enough',
    ({ size }) => plateau({ patience: size, metric }),
    (values, { size }) => {
      const numbers = values.map(metric);
      const bestAt = (place: number) => numbers.indexOf(Math.min(...numbers.slice(0, place + 1)));
      return values.filter((place) => place > bestAt(place) && (place - bestAt(place)) % size === 0);
    },
  ],
];

it.each(cases)('%s, and leaves nothing when it is left', (_, operator, wanted) => {
  fc.assert(
    fc.property(gaps, fc.nat(6), few, fc.nat(60), (gapsMs, slowMs, size, leftMs) => {
      const chance = { gapsMs, slowMs, size };
      const running = { now: 0 };
      const made = (clock: VirtualTimeScheduler) =>
        spaced(gapsMs, clock, running).pipe(operator(chance, clock), slowlyTaken(slowMs, clock));
      const clock = clockOf();
      const { values, end } = run(made(clock), clock);
      expect(end).toBe('complete');
      expect(values).toStrictEqual(wanted(upTo(gapsMs.length), chance));
      const other = clockOf();
      const before = leaveAt(made(other), leftMs, other);
      expect(before).toStrictEqual(values.slice(0, before.length));
      expect(running.now).toBe(0);
    }),
    RUNS,
  );
});

const slowlyTaken = (ms: number, clock: VirtualTimeScheduler) =>
  concatMapAhead((value: unknown) => timer(ms, clock).pipe(map(() => value)), { ahead: 1 });

it('named changes neither values nor their moments, watched or not', () =>
  fc.assert(
    fc.property(gaps, fc.nat(6), few, fc.boolean(), (gapsMs, slowMs, budget, watched) => {
      const moments = (isNamed: boolean) => {
        const clock = clockOf();
        const work = mergeMapWeighted((value: number) => timer(slowMs, clock).pipe(map(() => value)), {
          ...{ weight: () => 1, budget },
        });
        const stream = spaced(gapsMs, clock).pipe(
          isNamed ? named('rows') : identity,
          isNamed ? named('work', work) : work,
          map((value) => [value, clock.now()]),
        );
        return run(stream, clock).values;
      };
      const watching = watched ? flow$.subscribe() : undefined;
      expect(moments(true)).toStrictEqual(moments(false));
      watching?.unsubscribe();
    }),
    RUNS,
  ));

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const labels = ['yes', 'no'];

it('toDecisions gives a datum for every row, once and in order, with its label as the last target', () =>
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...labels), { maxLength: 12 }), (wanted) => {
      const targets: string[] = [];
      of(...wanted)
        .pipe(
          map((label, row) => ({ text: `row ${row}`, label })),
          toDecisions({ renderer, labels }),
        )
        .subscribe(({ lossFnInputs }) =>
          targets.push(String.fromCharCode(Number((lossFnInputs['target_tokens'] as TensorData).data.at(-1)))),
        );
      expect(targets).toStrictEqual(wanted.map((label) => label[0]));
    }),
    RUNS,
  ));

it('decide asks about every item once, within its limit, gives shares of 1, and cancels what it is left with', () =>
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 12 }), few, fc.nat(30), (all, most, leftMs) => {
      const asked = { open: 0, most: 0 };
      const made = (clock: VirtualTimeScheduler) => {
        let next = 0;
        const sample = ({ targetPromptLogprobs }: SampleOptions): Observable<SampleResponse> =>
          defer(() => {
            const [afterMs, logit] = all[next++]!;
            asked.most = Math.max(asked.most, ++asked.open);
            const { shape, sparse } = targetPromptLogprobs as TensorData;
            const data = Float32Array.of(-logit, -1);
            const scores = new TensorData({ dtype: 'float32', data, shape, sparse: sparse! });
            return timer(afterMs, clock).pipe(
              map(() => ({ sequences: [], promptCacheHitTokens: 0, targetPromptLogprobs: scores })),
              finalize(() => asked.open--),
            );
          });
        return of(...all.map((_, place) => `${place}`)).pipe(
          decide({ sample }, { renderer, labels, concurrency: most }),
        );
      };
      const clock = clockOf();
      const { values, end } = run(made(clock), clock);
      expect(end).toBe('complete');
      expect(asked.most).toBeLessThanOrEqual(most);
      expect(values.map(({ item }) => Number(item)).sort((a, b) => a - b)).toStrictEqual(upTo(all.length));
      for (const { item, label, probabilities } of values) {
        expect(probabilities['yes']! + probabilities['no']!).toBeCloseTo(1);
        const [, logit] = all[Number(item)]!;
        if (logit !== 1) expect(label).toBe(logit < 1 ? 'yes' : 'no');
      }
      const other = clockOf();
      leaveAt(made(other), leftMs, other);
      expect(asked.open).toBe(0);
    }),
    RUNS,
  ));
