/** Operators that add figures to values, or pass them: against the same figures taken the slow way. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { map, type Observable, type VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { keepGate, type MetricSummary, reduceMetrics, tokensPerSecond } from '../../../src/operators/index.js';
import { clockOf, few, gaps, leaveAt, run, RUNS, spaced } from './virtual.js';

const moment = fc.integer({ min: 0, max: 120 });

/** Runs a stream to its end, and leaves it at a moment: what it gave by then is the beginning of the same. */
function whole<T>(
  stream: (clock: VirtualTimeScheduler, running: { now: number }) => Observable<T>,
  leftMs: number,
): readonly T[] {
  const running = { now: 0 };
  const clock = clockOf();
  const { values, end } = run(stream(clock, running), clock);
  expect(end).toBe('complete');
  const other = clockOf();
  const before = leaveAt(stream(other, running), leftMs, other);
  // Not expect: it takes a metric called constructor for a class.
  assert.deepStrictEqual(before, values.slice(0, before.length));
  expect(running.now).toBe(0);
  return values;
}

function summary(found: readonly Readonly<Record<string, number>>[]): Record<string, MetricSummary> {
  const names = [...new Set(found.flatMap((metrics) => Object.keys(metrics)))];
  return Object.fromEntries(
    names.flatMap((name) => {
      const values = found
        .flatMap((metrics) => (Object.hasOwn(metrics, name) ? [metrics[name]!] : []))
        .filter((value) => !Number.isNaN(value));
      if (values.length === 0) return [];
      const sum = values.reduce((total, value) => total + value, 0);
      const { length: count } = values;
      const figures = { last: values.at(-1)!, mean: sum / count, sum, count };
      return [[name, { ...figures, min: Math.min(...values), max: Math.max(...values) }]];
    }),
  );
}

it('reduceMetrics passes every value once and in order, with the figures of all so far and of its window', () =>
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.integer({ min: 0, max: 9 }),
          fc.dictionary(
            fc.constantFrom('loss', 'a', 'b', '__proto__', 'constructor'),
            fc.oneof(fc.integer({ min: -99, max: 99 }), fc.constant(NaN)),
            { noNullPrototype: true },
          ),
        ),
        { maxLength: 24 },
      ),
      few,
      moment,
      (all, window, leftMs) => {
        const values = whole(
          (clock, running) =>
            spaced(
              all.map(([gapMs]) => gapMs),
              clock,
              running,
            ).pipe(
              map((id) => ({ id, metrics: all[id]![1] })),
              reduceMetrics({ window }),
            ),
          leftMs,
        );
        const metrics = all.map(([, found]) => found);
        assert.deepStrictEqual(
          values,
          metrics.map((found, id) => ({
            value: { id, metrics: found },
            running: summary(metrics.slice(0, id + 1)),
            windowed: summary(metrics.slice(Math.max(0, id + 1 - window), id + 1)),
          })),
        );
      },
    ),
    RUNS,
  ));

it('tokensPerSecond passes every value once and in order, with the tokens of its window by the time they took', () =>
  fc.assert(
    fc.property(gaps, few, moment, (all, window, leftMs) => {
      const values = whole(
        (clock, running) =>
          spaced(all, clock, running).pipe(
            map((id) => ({ id, tokens: id * 7 })),
            tokensPerSecond({ window, scheduler: clock }),
          ),
        leftMs,
      );
      expect(values).toStrictEqual(
        all.map((_, id) => {
          const from = Math.max(0, id + 1 - window);
          const tookMs = all.slice(from, id + 1).reduce((sum, gapMs) => sum + gapMs, 0);
          const tokens = all.slice(from, id + 1).reduce((sum, _gap, index) => sum + (from + index) * 7, 0);
          return { id, tokens: id * 7, tokensPerSecond: tookMs === 0 ? 0 : (tokens * 1000) / tookMs };
        }),
      );
    }),
    RUNS,
  ));

it('keepGate passes every value once and in order, at once', () =>
  fc.assert(
    fc.property(gaps, moment, (all, leftMs) => {
      let nowMs = 0;
      const values = whole(
        (clock, running) =>
          spaced(all, clock, running).pipe(
            keepGate(),
            map((id) => [id, clock.now()]),
          ),
        leftMs,
      );
      expect(values).toStrictEqual(all.map((gapMs, id) => [id, (nowMs += gapMs)]));
    }),
    RUNS,
  ));
