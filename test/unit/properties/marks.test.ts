/** Operators that mark batches, and those that stop and resume a run: what the trainer is asked, whatever data and limits chance chooses. */
import fc from 'fast-check';
import { defer, finalize, map, NEVER, type Observable, tap, timer, type VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import {
  checkpointEvery,
  continueFrom,
  evaluateEvery,
  type ForwardPasses,
  type Mark,
  markBatches,
  type MarkOperator,
  type Step,
  type TakesSnapshots,
  train,
  trainUntil,
} from '../../../src/operators/index.js';
import { datum, type FakeSampler, type FakeTrainer, fakeTrainer } from '../../../src/testing/fakeTrainer.js';
import type { Datum } from '../../../src/wire/datum.js';
import { clockOf, few, gaps, leaveAt, run, RUNS, spaced, upTo } from './virtual.js';

const moment = fc.integer({ min: 0, max: 120 });
/** Batches that come faster than a pass, so that some wait. */
const quick = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 24 });
const further = fc.integer({ min: 0, max: 3 });
const NONE: readonly string[] = [];

/** Batch 0 has one datum, batch 1 two: so a trainer's log names them. */
const batchOf = (id: number): readonly Datum[] => upTo(id + 1).map(() => datum(1, 1));

/** A trainer's log as `pass 0`, `optimizer`, and the names of other calls. */
const shorten = (log: readonly string[]): string[] =>
  log.map((call) => {
    const [name, count] = call.split(' ');
    if (name === 'forwardBackward') return `pass ${Number(count) - 1}`;
    return name === 'optimStep' ? 'optimizer' : call;
  });

/** The calls of a run over so many batches, with what is due after each step. */
function calls(count: number, accumulate: number, due: (steps: number, last: boolean) => readonly string[]): string[] {
  return upTo(Math.ceil(count / accumulate)).flatMap((step) => {
    const ids = upTo(count).slice(step * accumulate, (step + 1) * accumulate);
    return [...ids.map((id) => `pass ${id}`), 'optimizer', ...due(step + 1, (step + 1) * accumulate >= count)];
  });
}

/** The operator; fails where it holds more than so many values. */
function holdsAtMost<A, B>(most: number, operator: (source: Observable<A>) => Observable<B>) {
  return (source: Observable<A>): Observable<B> =>
    defer(() => {
      let held = 0;
      return source.pipe(
        tap(() => expect(++held).toBeLessThanOrEqual(most + 1)),
        operator,
        tap(() => held--),
      );
    });
}

/** Counts what is under way. */
const counted = <T>(work: Observable<T>, running: { now: number; most?: number }): Observable<T> =>
  defer(() => {
    running.most = Math.max(running.most ?? 0, ++running.now);
    return work.pipe(finalize(() => running.now--));
  });

interface Run extends Pick<FakeTrainer, 'log'> {
  readonly stream: Observable<Step>;
  /** What is under way. */
  readonly running: { now: number };
}

/** Leaves a run: its trainer was asked the first of what was wanted, and is asked nothing more. */
function leave({ stream, log, running }: Run, clock: VirtualTimeScheduler, atMs: number, wanted: readonly string[]) {
  let asked = 0;
  leaveAt(stream, atMs, clock, () => (asked = log.length));
  expect(shorten(log)).toStrictEqual(wanted.slice(0, asked));
  expect(running.now).toBe(0);
}

it('checkpointEvery saves once after each step that is due, in turn, and removes all but the last; left, it leaves nothing', () =>
  fc.assert(
    fc.property(
      fc.record({ all: gaps, steps: few, accumulate: few, ahead: further, atEnd: fc.boolean() }),
      fc.option(few, { nil: undefined }),
      moment,
      ({ all, steps, accumulate, ahead, atEnd }, keepLast, leftMs) => {
        const removed: string[] = [];
        const work = (clock: VirtualTimeScheduler): Run => {
          const running = { now: 0 };
          const { trainer, log } = fakeTrainer({ scheduler: clock });
          const remove = (path: string) => counted(timer(2, clock).pipe(map(() => removed.push(path))), running);
          const mark = checkpointEvery({ steps, atEnd, ...(keepLast === undefined ? {} : { keepLast, remove }) });
          const stream = spaced(all, clock, running).pipe(
            map(batchOf),
            holdsAtMost(atEnd ? 1 : 0, (source) => mark(source)),
            train(trainer, { loss: 'cross_entropy', ahead, accumulate, scheduler: clock }),
          );
          return { stream, log, running };
        };
        const name = (count: number) => `step-${String(count).padStart(6, '0')}`;
        const isDue = (count: number, last: boolean) => count % steps === 0 || (atEnd && last);
        const wanted = calls(all.length, accumulate, (count, last) =>
          isDue(count, last) ? [`saveState ${name(count)}`] : NONE,
        );
        const clock = clockOf();
        const { stream, log, running } = work(clock);
        const { values, end } = run(stream, clock);
        expect(end).toBe('complete');
        expect(shorten(log)).toStrictEqual(wanted);
        expect(values.map(({ index }) => index)).toStrictEqual(upTo(Math.ceil(all.length / accumulate)));
        const saved = values.flatMap(({ index, batches, checkpoint }) => {
          expect(checkpoint !== undefined).toBe(isDue(index + 1, index === values.length - 1));
          if (checkpoint === undefined) return [];
          expect(checkpoint).toMatchObject({ steps: index + 1, batches });
          return [checkpoint.statePath];
        });
        // What was saved holds the steps that its name says.
        expect(saved.every((path) => /-0*(\d+)@\1$/.test(path!))).toBe(true);
        expect(removed).toStrictEqual(keepLast === undefined ? [] : saved.slice(0, -keepLast));
        expect(running.now).toBe(0);
        const other = clockOf();
        leave(work(other), other, leftMs, wanted);
      },
    ),
    RUNS,
  ));

it('evaluateEvery evaluates the weights of each step that is due, once, in order, one at a time; left, it leaves nothing', () =>
  fc.assert(
    fc.property(
      fc.record({ all: gaps, steps: few, accumulate: few, ahead: further, atEnd: fc.boolean() }),
      fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
      moment,
      ({ all, steps, accumulate, ahead, atEnd }, takesMs, leftMs) => {
        const evaluating = { now: 0, most: 0 };
        const work = (clock: VirtualTimeScheduler): Run => {
          const running = { now: 0 };
          const { trainer, log } = fakeTrainer({ scheduler: clock });
          const evaluate = (sampler: FakeSampler) =>
            counted(timer(takesMs!, clock).pipe(map(() => ({ steps: sampler.steps }))), evaluating);
          const mark: MarkOperator<ForwardPasses & TakesSnapshots<FakeSampler>> =
            takesMs === undefined
              ? evaluateEvery({ steps, atEnd, validation: [datum(1, 1)] })
              : evaluateEvery({ steps, atEnd, evaluate });
          const stream = spaced(all, clock, running).pipe(
            map(batchOf),
            holdsAtMost(atEnd ? 1 : 0, (source) => mark(source)),
            train(trainer, { loss: 'cross_entropy', ahead, accumulate, scheduler: clock }),
          );
          return { stream, log, running };
        };
        const due: number[] = [];
        const wanted = calls(all.length, accumulate, (count, last) => {
          if (count % steps !== 0 && !(atEnd && last)) return NONE;
          due.push(count);
          return [takesMs === undefined ? 'forward 1 cross_entropy' : 'snapshot'];
        });
        const clock = clockOf();
        const { stream, log } = work(clock);
        const { values, end } = run(stream, clock);
        expect(end).toBe('complete');
        expect(shorten(log)).toStrictEqual(wanted);
        expect(values.map(({ index }) => index)).toStrictEqual(upTo(Math.ceil(all.length / accumulate)));
        const told = values.flatMap(({ index, evaluations = [] }) => {
          for (const evaluation of evaluations) expect(evaluation.index).toBeLessThanOrEqual(index);
          return evaluations.map((evaluation) => [evaluation.index + 1, evaluation.metrics]);
        });
        // The fake's loss on held-out data says how many steps its weights hold.
        const found = (count: number) => (takesMs === undefined ? { validation_loss: 100 - count } : { steps: count });
        expect(told).toStrictEqual(due.map((count) => [count, found(count)]));
        expect(evaluating).toStrictEqual({ now: 0, most: takesMs === undefined || due.length === 0 ? 0 : 1 });
        const other = clockOf();
        leave(work(other), other, leftMs, wanted);
        expect(evaluating.now).toBe(0);
      },
    ),
    RUNS,
  ));

it('markBatches marks every batch once and in order, the last one as the last, and holds one at most', () =>
  fc.assert(
    fc.property(gaps, few, fc.boolean(), moment, (all, marks, atEnd, leftMs) => {
      const added = upTo(marks).map((): Mark => () => {});
      const running = { now: 0 };
      const marked = (clock: VirtualTimeScheduler) =>
        added.reduce(
          (source, mark) => source.pipe(holdsAtMost(atEnd ? 1 : 0, (before) => markBatches(mark, { atEnd })(before))),
          spaced(all, clock, running).pipe(
            map(batchOf),
            map((data, position) => ({ data, position, marks: [] as readonly Mark[] })),
          ) as ReturnType<ReturnType<typeof markBatches>>,
        );
      const clock = clockOf();
      const { values, end } = run(marked(clock), clock);
      expect(end).toBe('complete');
      expect(values.map(({ data }) => data.length - 1)).toStrictEqual(upTo(all.length));
      expect(values.map(({ position }) => position)).toStrictEqual(upTo(all.length));
      expect(values.every((batch) => batch.marks.every((mark, index) => mark === added[index]))).toBe(true);
      expect(values.map(({ last = false }) => last)).toStrictEqual(
        upTo(all.length).map((id) => atEnd && id === all.length - 1),
      );
      const other = clockOf();
      const before = leaveAt(marked(other), leftMs, other);
      expect(before.map(({ position }) => position)).toStrictEqual(upTo(before.length));
      expect(running.now).toBe(0);
    }),
    RUNS,
  ));

it('continueFrom passes the batches that are left, at once and in order, with their places in the whole', () =>
  fc.assert(
    fc.property(gaps, fc.integer({ min: 0, max: 30 }), moment, (all, done, leftMs) => {
      const running = { now: 0 };
      const rest = (clock: VirtualTimeScheduler) =>
        spaced(all, clock, running).pipe(
          map(batchOf),
          continueFrom({ batches: done }),
          map(({ data, position, marks }) => [data.length - 1, position, marks.length, clock.now()]),
        );
      const clock = clockOf();
      const { values, end } = run(rest(clock), clock);
      let nowMs = 0;
      const wanted = all.map((gapMs, id) => [id, id, 0, (nowMs += gapMs)]).slice(done);
      expect(end).toBe('complete');
      expect(values).toStrictEqual(wanted);
      const other = clockOf();
      const before = leaveAt(rest(other), leftMs, other);
      expect(before).toStrictEqual(wanted.slice(0, before.length));
      expect(before.length).toBeGreaterThanOrEqual(wanted.filter(([, , , atMs]) => atMs! < leftMs).length);
      expect(running.now).toBe(0);
    }),
    RUNS,
  ));

it('trainUntil, stopped at any moment and continued from there, has trained on every batch once, in order', () =>
  fc.assert(
    fc.property(quick, further, few, moment, moment, (all, ahead, accumulate, stopMs, leftMs) => {
      const work = (clock: VirtualTimeScheduler, done: number, stop$: Observable<unknown>): Run => {
        const running = { now: 0 };
        const { trainer, log } = fakeTrainer({ scheduler: clock });
        const stream = spaced(all, clock, running).pipe(
          map(batchOf),
          continueFrom({ batches: done }),
          trainUntil(stop$, trainer, { loss: 'cross_entropy', ahead, accumulate, scheduler: clock }),
        );
        return { stream, log, running };
      };
      const whole = calls(all.length, accumulate, () => NONE);

      const clock = clockOf();
      let stopped = false;
      const stop$ = timer(stopMs, clock).pipe(tap(() => (stopped = true)));
      const { stream, log, running } = work(clock, 0, stop$);
      const late: number[] = [];
      const watched = stream.pipe(tap(({ index }) => void (clock.now() > stopMs && late.push(index))));
      const { values, end } = run(watched, clock);
      expect(end).toBe('complete');
      expect(running.now).toBe(0);
      const trained = shorten(log).filter((call) => !call.startsWith('saveState'));
      const checkpoint = values.at(-1)?.checkpoint;
      if (stopped) {
        expect(late.length).toBeLessThanOrEqual(ahead + 1);
        // A step comes again, with its checkpoint, only where it was out before the stop.
        expect(new Set(late).size).toBe(late.length);
        expect(log.filter((call) => call.startsWith('saveState'))).toHaveLength(values.length === 0 ? 0 : 1);
        expect(checkpoint === undefined).toBe(values.length === 0);
      }
      const done = checkpoint?.batches ?? (stopped ? 0 : all.length);
      const other = clockOf();
      const continued = work(other, done, NEVER);
      expect(run(continued.stream, other).end).toBe('complete');
      const passes = [...trained, ...shorten(continued.log)].filter((call) => call !== 'optimizer');
      expect(passes).toStrictEqual(whole.filter((call) => call !== 'optimizer'));

      const third = clockOf();
      leave(work(third, 0, NEVER), third, leftMs, whole);
    }),
    RUNS,
  ));
