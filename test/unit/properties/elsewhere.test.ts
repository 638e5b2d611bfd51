/** Operators of other rooms that pass each value on: logs, figures, judges. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  defer,
  finalize,
  interval,
  map,
  type Observable,
  type OperatorFunction,
  timer,
  type VirtualTimeScheduler,
} from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withCost, withinBudget } from '../../../src/evals/index.js';
import type { Step } from '../../../src/operators/index.js';
import { advantages, groupRewards, LivePolicy } from '../../../src/rl/index.js';
import { admit } from '../../../src/rl/pacing/admit.js';
import { metricsLog, tensorBoardLog, toJsonl, wandbLog } from '../../../src/sinks/index.js';
import { groupOf } from '../../marbles/fakeLoop.js';
import { clockOf, few, gaps, leaveAt, run, RUNS, spaced, upTo } from './virtual.js';

const moment = fc.integer({ min: 0, max: 120 });
let folder: string;
let files = 0;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'properties-'))));
afterAll(() => rmSync(folder, { recursive: true }));
const fresh = () => join(folder, String(files++));

const stepOf = (index: number): Step => ({
  ...{ index, loss: 1, lossSum: 1, metrics: {}, datums: 1, tokens: 1, learningRate: 1, batches: 1, durationMs: 1 },
});
const overSteps =
  (operator: OperatorFunction<Step, Step>): OperatorFunction<number, number> =>
  (source) =>
    source.pipe(
      map(stepOf),
      operator,
      map(({ index }) => index),
    );

/** What a stage has to work with: its clock, its limit, and a count of what it has under way. */
interface Stage {
  readonly clock: VirtualTimeScheduler;
  readonly limit: number;
  readonly open: { now: number; most: number };
}
const work = <T>({ clock, open }: Stage, id: number, value: T): Observable<T> =>
  defer(() => {
    open.most = Math.max(open.most, ++open.now);
    return timer((id * 7) % 10, clock).pipe(
      map(() => value),
      finalize(() => open.now--),
    );
  });

const PASSING: readonly (readonly [string, (stage: Stage) => OperatorFunction<number, number>])[] = [
  ['toJsonl', () => toJsonl(fresh())],
  ['metricsLog', () => overSteps(metricsLog(fresh()))],
  ['tensorBoardLog', () => overSteps(tensorBoardLog(fresh()))],
  ['wandbLog', () => overSteps(wandbLog(fresh()))],
  [
    'withCost',
    ({ clock }) => {
      const cost$ = interval(3, clock).pipe(map((tokens) => ({ tokens }) as never));
      return overSteps(withCost(cost$));
    },
  ],
  [
    'withinBudget',
    ({ clock }) => {
      const cost$ = interval(3, clock).pipe(map(() => ({ tokens: 0 }) as never));
      return withinBudget({ cost$, budget: { tokens: 1 } });
    },
  ],
  [
    'advantages',
    () => (source) =>
      source.pipe(
        map((id) => groupOf(id, [1, 0])),
        advantages(),
        map(({ order }) => order),
      ),
  ],
  [
    'groupRewards',
    (stage) => (source) =>
      source.pipe(
        map((id) => groupOf(id, [1, 0])),
        groupRewards((_, task) => work(stage, Number(String(task).slice('task '.length)), [1, 0]), {
          concurrency: stage.limit,
        }),
        map(({ order }) => order),
      ),
  ],
];

it.each(PASSING)('%s passes every value once and in order, within its limit; left, it leaves nothing', (_, operator) =>
  fc.assert(
    fc.property(gaps, few, moment, (all, limit, leftMs) => {
      const running = { now: 0 };
      const open = { now: 0, most: 0 };
      const stream = (clock: VirtualTimeScheduler) =>
        spaced(all, clock, running).pipe(operator({ clock, limit, open }));
      const clock = clockOf();
      expect(run(stream(clock), clock)).toStrictEqual({ values: upTo(all.length), end: 'complete' });
      const other = clockOf();
      const before = leaveAt(stream(other), leftMs, other);
      expect(before).toStrictEqual(upTo(before.length));
      expect(open.most).toBeLessThanOrEqual(limit);
      expect([open.now, running.now]).toStrictEqual([0, 0]);
    }),
    { numRuns: 20 },
  ),
);

it('toJsonl and metricsLog have a line for every value that they passed, also where they are left', () =>
  fc.assert(
    fc.property(gaps, moment, (all, leftMs) => {
      const [lines, log] = [fresh(), fresh()];
      const clock = clockOf();
      const before = leaveAt(
        spaced(all, clock).pipe(
          map((id) => id + 0.5),
          toJsonl(lines),
          map((value) => stepOf(value - 0.5)),
          metricsLog(log),
        ),
        leftMs,
        clock,
      );
      const written = (path: string) =>
        readFileSync(path, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as unknown);
      expect(written(lines)).toStrictEqual(before.map(({ index }) => index + 0.5));
      if (before.length > 0)
        expect(written(join(log, 'metrics.jsonl'))).toMatchObject(before.map(({ index }) => ({ index })));
    }),
    { numRuns: 20 },
  ));

it('admit lets every value through once and in order, and no more than the pace allows beyond what is done', () =>
  fc.assert(
    fc.property(gaps, few, few, moment, (all, limit, everyMs, leftMs) => {
      const running = { now: 0 };
      const stream = (clock: VirtualTimeScheduler) =>
        defer(() => {
          const policy = new LivePolicy<string>();
          policy.pace.start(limit);
          let admitted = 0;
          const releases = interval(everyMs, clock).subscribe((tick) => {
            if (tick === 0) policy.publish('weights', 0);
            else if (admitted > policy.pace.done) policy.pace.release(1);
          });
          return spaced(all, clock, running).pipe(
            admit(policy),
            map((id) => {
              expect(++admitted - policy.pace.done).toBeLessThanOrEqual(limit);
              return id;
            }),
            finalize(() => releases.unsubscribe()),
          );
        });
      const clock = clockOf();
      expect(run(stream(clock), clock)).toStrictEqual({ values: upTo(all.length), end: 'complete' });
      const other = clockOf();
      const before = leaveAt(stream(other), leftMs, other);
      expect(before).toStrictEqual(upTo(before.length));
      expect(running.now).toBe(0);
    }),
    RUNS,
  ));
