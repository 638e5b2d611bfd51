/** Operators in virtual time, under rows, delays and limits that chance chooses. */
import fc from 'fast-check';
import { isLeft, isRight } from 'fp-ts/lib/Either.js';
import {
  concat,
  defer,
  finalize,
  from,
  map,
  NEVER,
  type Observable,
  of,
  take,
  tap,
  throwError,
  timer,
  type VirtualTimeScheduler,
} from 'rxjs';
import { expect, it } from 'vitest';
import { ModelInput, type SampleOptions, type SampleResponse } from '../../../src/index.js';
import {
  interleave,
  repeatEpochs,
  retryBackoff,
  sampleFrom,
  settle,
  shuffle,
  takeUntilIdle,
  train,
  type Trainable,
} from '../../../src/operators/index.js';
import { datum } from '../../../src/testing/fakeTrainer.js';
import { clockOf, few, gaps, run, RUNS, spaced, upTo } from './virtual.js';

it('interleave takes every row of every dataset once and in its order, at any pace; nothing runs after it', () =>
  fc.assert(
    fc.property(
      fc.array(fc.tuple(gaps, few), { maxLength: 4 }),
      fc.option(fc.integer(), { nil: undefined }),
      few,
      fc.integer({ min: 0, max: 30 }),
      (sets, seed, prefetch, taken) => {
        const mix = (clock: VirtualTimeScheduler, running: { now: number }) =>
          interleave(
            sets.map(([gapsMs, weight], set) => ({
              source: spaced(gapsMs, clock, running).pipe(map((id) => [set, id] as const)),
              weight,
            })),
            { prefetch, ...(seed === undefined ? {} : { seed }) },
          );
        const running = { now: 0 };
        const clock = clockOf();
        const { values, end } = run(mix(clock, running), clock);
        expect(end).toBe('complete');
        sets.forEach(([gapsMs], set) => {
          const ids = values.filter(([of]) => of === set).map(([, id]) => id);
          expect(ids).toStrictEqual(upTo(gapsMs.length));
        });
        const other = clockOf();
        expect(run(mix(other, running).pipe(take(taken)), other).values).toStrictEqual(values.slice(0, taken));
        expect(running.now).toBe(0);
      },
    ),
    RUNS,
  ));

it('repeatEpochs runs through everything once per epoch, shuffled or not, and one epoch at a time', () =>
  fc.assert(
    fc.property(
      gaps,
      fc.integer({ min: 0, max: 4 }),
      few,
      fc.integer({ min: 0, max: 40 }),
      (all, epochs, window, taken) => {
        const clock = clockOf();
        const running = { now: 0 };
        const source = spaced(all, clock, running);
        const plain = run(source.pipe(repeatEpochs({ epochs })), clock);
        expect(plain).toStrictEqual({ values: upTo(epochs).flatMap(() => upTo(all.length)), end: 'complete' });
        const each = (rows: Observable<number>, epoch: number) =>
          rows.pipe(
            shuffle({ window, seed: epoch }),
            map((id) => {
              // The rows of an epoch that has ended may still be held; its source is not read any more.
              expect(running.now).toBeLessThanOrEqual(1);
              return [epoch, id] as const;
            }),
          );
        const { values } = run(source.pipe(repeatEpochs({ epochs, each })), clock);
        expect(values.map(([epoch]) => epoch)).toStrictEqual(upTo(epochs).flatMap((epoch) => all.map(() => epoch)));
        for (const epoch of upTo(epochs)) {
          const ids = values.filter(([of]) => of === epoch).map(([, id]) => id);
          expect(ids.sort((a, b) => a - b)).toStrictEqual(upTo(all.length));
        }
        run(source.pipe(repeatEpochs(), take(taken)), clock);
        expect(running.now).toBe(0);
      },
    ),
    RUNS,
  ));

it('settle gives every value and the error at last, and never fails', () =>
  fc.assert(
    fc.property(gaps, fc.option(fc.anything(), { nil: undefined }), (all, reason) => {
      const clock = clockOf();
      const source = concat(spaced(all, clock), reason === undefined ? [] : throwError(() => reason));
      const { values, end } = run(source.pipe(settle()), clock);
      expect(end).toBe('complete');
      expect(values.filter(isRight).map(({ right }) => right)).toStrictEqual(upTo(all.length));
      const lefts = values.filter(isLeft);
      expect(lefts).toHaveLength(reason === undefined ? 0 : 1);
      for (const { left } of lefts) expect(left).toBe(reason);
      expect(values.findIndex(isLeft)).toBe(reason === undefined ? -1 : all.length);
    }),
    RUNS,
  ));

it('retryBackoff tries as often as it may, waits no longer than it may, and leaves nothing when it is left', () =>
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 0, max: 2000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, maxRetries, maxMs, chance) => {
        const clock = clockOf();
        const starts: number[] = [];
        const source = defer(() => {
          starts.push(clock.now());
          return starts.length <= failures ? throwError(() => ({ retryable: true })) : of('value');
        });
        const options = { initialMs: 100, factor: 2, maxMs, maxRetries, scheduler: clock, random: () => chance };
        const { values, end } = run(source.pipe(retryBackoff(options)), clock);
        expect(starts).toHaveLength(Math.min(failures, maxRetries) + 1);
        expect(values).toStrictEqual(failures <= maxRetries ? ['value'] : []);
        expect(end === 'complete').toBe(failures <= maxRetries);
        starts.slice(1).forEach((start, index) => {
          const meantMs = Math.min(maxMs, 100 * 2 ** index);
          expect(Math.abs(start - starts[index]! - meantMs)).toBeLessThanOrEqual(meantMs / 4 + 1e-6);
        });
        const left = clockOf();
        throwError(() => ({ retryable: true }))
          .pipe(retryBackoff({ ...options, scheduler: left, maxRetries: Infinity }))
          .subscribe()
          .unsubscribe();
        left.flush();
        expect(left.now()).toBe(0);
      },
    ),
    RUNS,
  ));

it('takeUntilIdle passes what comes before the first silence that is too long, and not a value more', () =>
  fc.assert(
    fc.property(gaps, fc.integer({ min: 1, max: 9 }), (all, idleMs) => {
      const clock = clockOf();
      const running = { now: 0 };
      const silent = all.findIndex((gapMs) => gapMs > idleMs);
      // Where both fall on the same moment, either may be first.
      fc.pre(!all.slice(0, silent < 0 ? undefined : silent).includes(idleMs));
      const source = concat(spaced(all, clock, running), NEVER);
      const { values, end } = run(source.pipe(takeUntilIdle({ idleMs, scheduler: clock })), clock);
      expect(values).toStrictEqual(upTo(silent < 0 ? all.length : silent));
      expect(end).toBe('complete');
      expect(running.now).toBe(0);
    }),
    RUNS,
  ));

it('sampleFrom asks for every item once, within its limit, and cancels what is under way when it is left', () =>
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.boolean()), { maxLength: 24 }),
      few,
      fc.integer({ min: 0, max: 24 }),
      (all, concurrency, taken) => {
        const answer: SampleResponse = { sequences: [] } as unknown as SampleResponse;
        const asked = { ids: [] as number[], open: 0, most: 0 };
        const sampler = (clock: VirtualTimeScheduler) => ({
          sample: ({ prompt }: SampleOptions): Observable<SampleResponse> =>
            defer(() => {
              const id = prompt.toInts()[0]!;
              asked.ids.push(id);
              asked.most = Math.max(asked.most, ++asked.open);
              const [afterMs, fails] = all[id]!;
              return timer(afterMs, clock).pipe(
                map(() => {
                  if (fails) throw new Error(`no ${id}`);
                  return answer;
                }),
                finalize(() => asked.open--),
              );
            }),
        });
        const ask = (clock: VirtualTimeScheduler) =>
          from(all.keys()).pipe(
            sampleFrom(sampler(clock), {
              ...{ settle: true, concurrency },
              request: (id: number) => ({ prompt: ModelInput.fromInts([id]), samplingParams: {} }),
            }),
          );
        const clock = clockOf();
        const { values, end } = run(ask(clock), clock);
        expect(end).toBe('complete');
        expect(asked.ids).toStrictEqual(upTo(all.length));
        expect(asked.most).toBeLessThanOrEqual(concurrency);
        const told = values.map((each) =>
          isRight(each) ? ([each.right.item, false] as const) : ([each.left.item, true] as const),
        );
        told.sort(([a], [b]) => a - b);
        expect(told).toStrictEqual(all.map(([, fails], id) => [id, fails]));
        const other = clockOf();
        run(ask(other).pipe(take(taken)), other);
        expect(asked.open).toBe(0);
      },
    ),
    RUNS,
  ));

it('train submits every batch once and in order, no further ahead than it may, and nothing after it is left', () =>
  fc.assert(
    fc.property(gaps, gaps, fc.integer({ min: 0, max: 4 }), few, few, (all, takes, ahead, accumulate, taken) => {
      const wanted = upTo(all.length).flatMap((id) => {
        const closes = (id + 1) % accumulate === 0 || id === all.length - 1;
        return closes ? [`pass ${id}`, 'optimizer'] : [`pass ${id}`];
      });
      const work = (clock: VirtualTimeScheduler) => {
        const log: string[] = [];
        const steps = { unfinished: 0, most: 0, heard: 0 };
        // A queue, as the service is one: nothing is done before what was submitted earlier.
        let freeAt = 0;
        const queued = <A>(value: A, index: number): Observable<A> => {
          freeAt = Math.max(freeAt, clock.now()) + (takes[index % (takes.length || 1)] ?? 1);
          return timer(freeAt - clock.now(), clock).pipe(map(() => value));
        };
        const trainer: Trainable = {
          forwardBackward: ([first]) => {
            const id = first!.modelInput.length - 1;
            log.push(`pass ${id}`);
            return queued({ lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': id } }, id);
          },
          optimStep: () => {
            log.push('optimizer');
            steps.most = Math.max(steps.most, ++steps.unfinished);
            steps.heard++;
            return queued({}, log.length).pipe(
              tap(() => steps.unfinished--),
              finalize(() => steps.heard--),
            );
          },
        };
        const stream = spaced(all, clock).pipe(
          map((id) => [datum(id + 1, 1)]),
          train(trainer, { loss: 'cross_entropy', ahead, accumulate, scheduler: clock }),
        );
        return { log, steps, stream };
      };
      const clock = clockOf();
      const { log, steps, stream } = work(clock);
      const { values, end } = run(stream, clock);
      expect(end).toBe('complete');
      expect(log).toStrictEqual(wanted);
      expect(values.map(({ index }) => index)).toStrictEqual(upTo(Math.ceil(all.length / accumulate)));
      expect(values.reduce((sum, { lossSum }) => sum + lossSum, 0)).toBe(all.reduce((sum, _, id) => sum + id, 0));
      expect(steps.most).toBeLessThanOrEqual(ahead + 1);
      expect(steps.heard).toBe(0);

      const other = clockOf();
      const left = work(other);
      let submitted = 0;
      run(
        left.stream.pipe(
          take(taken),
          finalize(() => (submitted = left.log.length)),
        ),
        other,
      );
      expect(left.log).toStrictEqual(wanted.slice(0, left.log.length));
      expect(left.log).toHaveLength(submitted);
      expect(left.steps.heard).toBe(0);
    }),
    RUNS,
  ));
