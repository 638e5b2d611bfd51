import { from, map, NEVER, of, Subject, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { checkpointEvery } from '../../src/operators/training/checkpointEvery.js';
import { plateau } from '../../src/operators/metrics/plateau.js';
import type { Step } from '../../src/operators/training/step.js';
import { trainUntil, type TrainUntilOptions } from '../../src/operators/training/trainUntil.js';
import type { Saves, Trainable } from '../../src/operators/training/Trainable.js';
import { keepsContract, throwing } from './contract.js';
import { datum, fakeTrainer } from './fakeTrainer.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const loss = 'cross_entropy';
const values = { a: [datum(2, 1)], b: [datum(2, 1)], c: [datum(2, 1)], d: [datum(2, 1)] };
/** A step as its index, with `!` where it brings a checkpoint. */
const seen = map((step: Step) => `${step.index}${step.checkpoint === undefined ? '' : '!'}`);
const passes = (log: readonly string[]) => log.filter((call) => call.startsWith('forwardBackward')).length;

/** A trainer that has every result at once. */
const instant: Trainable & Saves = {
  forwardBackward: () => of({ lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': 1 } }),
  optimStep: () => of({}),
  saveState: () => of({ path: 'tinker://run/weights/x' }),
};

describe('trainUntil', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => values.a),
        trainUntil(NEVER, instant, { loss }),
        map(({ index }) => index),
      ),
    readsForThree: 4,
    throwing: () => (source) =>
      source.pipe(
        map(() => values.a),
        trainUntil(NEVER, instant, { loss, adam: { learningRate: throwing } }),
      ),
  });

  it(
    'is train until it is stopped',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abcd|)', values);
      const expected = '       ----s---t---u---(v|)';
      const steps = source.pipe(trainUntil(NEVER, trainer, { loss, ahead: 1 }), seen);
      m.expect(steps).toBeObservable(expected, { s: '0', t: '1', u: '2', v: '3' });
      m.flush();
      expect(log.filter((call) => call.startsWith('save'))).toStrictEqual([]);
    }),
  );

  it(
    'finishes the steps that were submitted, and saves after them, where all data had come at once',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4, saveMs: 2 });
      const source = m.cold('  (abcd|)', values);
      const stop = m.cold('    -----x');
      const expected = '       ----s-----(t|)';
      const steps = source.pipe(trainUntil(stop, trainer, { loss, ahead: 0 }), seen);
      m.expect(steps).toBeObservable(expected, { s: '0', t: '1!' });
      m.flush();
      expect(passes(log)).toBe(2);
      expect(log.at(-1)).toBe('saveState step-000002');
    }),
  );

  it.each([0, 1, 3])('finishes at most ahead + 1 steps after the stop: ahead %i', (ahead) => {
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4 });
      const stop = m.cold('    ---------x');
      const late: Step[] = [];
      // A thousand batches that come at once, as out of a shuffle that has reached its end.
      const batches = from(Array.from({ length: 1000 }, () => [datum(2, 1)]));
      batches.pipe(trainUntil(stop, trainer, { loss, ahead })).subscribe((step) => {
        if (m.scheduler.now() >= 9) late.push(step);
      });
      m.flush();
      expect(late.length).toBeLessThanOrEqual(ahead + 1);
      expect(late.at(-1)).toMatchObject({ checkpoint: { steps: passes(log), batches: passes(log) } });
    })();
  });

  it(
    'says where to resume, and saves what it is told to',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4, saveMs: 1 });
      const options: TrainUntilOptions = {
        loss,
        checkpoint: { kind: 'both', ttlSeconds: 3600, name: (n) => `end-${n}` },
      };
      const steps: Step[] = [];
      const source = m.cold('(abcd|)', values);
      source
        .pipe(trainUntil(m.cold('-x'), trainer, { ...options, scheduler: m.scheduler }))
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(steps.at(-1)!.checkpoint).toStrictEqual({
        name: 'end-2',
        steps: 2,
        batches: 2,
        statePath: 'tinker://run/weights/end-2@2',
        samplerPath: 'tinker://run/sampler_weights/end-2@2',
        kept: false,
        expiresAtMs: expect.any(Number) as number,
      });
    }),
  );

  it(
    'saves nothing twice where the last step has its checkpoint, and drops the batch that is held for the end',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4, saveMs: 1 });
      const source = m.cold('(abcd|)', values);
      const steps: string[] = [];
      source
        .pipe(
          checkpointEvery({ steps: 2, atEnd: true }),
          trainUntil(m.cold('-----x'), trainer, { loss, ahead: 0 }),
          seen,
        )
        .subscribe((step) => steps.push(step));
      m.flush();
      expect(steps).toStrictEqual(['0', '1!']);
      expect(log.filter((call) => call.startsWith('save'))).toStrictEqual(['saveState step-000002']);
    }),
  );

  it(
    'gives the last step again, with its checkpoint, where it is out already',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4, saveMs: 1 });
      const source = m.cold('  a---------------b|', values);
      const stop = m.cold('    ---------x');
      const expected = '       ----s-----(t|)';
      m.expect(source.pipe(trainUntil(stop, trainer, { loss }), seen)).toBeObservable(expected, { s: '0', t: '0!' });
    }),
  );

  it(
    'completes without a value where it is stopped before its first step',
    marbles((m) => {
      const { trainer, log } = fakeTrainer();
      const source = m.cold('  -----a|', values);
      m.expect(source.pipe(trainUntil(m.cold('--x'), trainer, { loss }))).toBeObservable('--|');
      m.expect(source).toHaveSubscriptions('^-!');
      m.flush();
      expect(log).toStrictEqual([]);
    }),
  );

  it(
    'passes errors of the source, of a step, of stop$ and of the save; stop$ completing means nothing',
    marbles((m) => {
      const run = (source: Observable<(typeof values)['a']>, stop: Observable<unknown>, fails = false) =>
        source.pipe(trainUntil(stop, fakeTrainer({ passMs: 4, fails: () => fails }).trainer, { loss }), seen);
      m.expect(run(m.cold('#'), NEVER)).toBeObservable('#');
      m.expect(run(of(values.a), NEVER, true)).toBeObservable('----#', undefined, new Error('pass 0 failed'));
      m.expect(run(m.cold('a----b|', values), m.cold('--#'))).toBeObservable('----(s#)', { s: '0' });
      m.expect(run(of(values.a), m.cold('--|'))).toBeObservable('----(s|)', { s: '0' });
      const { trainer } = fakeTrainer({ passMs: 4 });
      const unable = { ...trainer, saveState: () => m.cold<{ path: string }>('-#', undefined, new Error('full')) };
      m.expect(m.cold('(ab|)', values).pipe(trainUntil(m.cold('-x'), unable, { loss, ahead: 0 }), seen)).toBeObservable(
        '-----#',
        undefined,
        new Error('full'),
      );
    }),
  );

  it('reads no more than train does of a source that knows of gates', () => {
    const { trainer } = fakeTrainer();
    const { source, sent } = gated();
    const subscription = source
      .pipe(
        map(() => datum(2, 1)),
        batch({ size: 1 }),
        trainUntil(new Subject(), trainer, { loss, ahead: 1 }),
      )
      .subscribe();
    expect(sent()).toBeLessThanOrEqual(4);
    subscription.unsubscribe();
  });

  it(
    'stops where its own steps say so, and saves',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4, saveMs: 2 });
      const source = m.cold('  (abcd|)', values);
      const expected = '       ----s-----(t|)';
      // The metric is the same at every step: the second is no better.
      const steps = source.pipe(
        trainUntil((each) => each.pipe(plateau({ patience: 1, metric: () => 1 })), trainer, { loss, ahead: 0 }),
        seen,
      );
      m.expect(steps).toBeObservable(expected, { s: '0', t: '1!' });
      m.flush();
      expect(passes(log)).toBe(2);
    }),
  );
});
