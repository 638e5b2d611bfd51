// Pipelines that hung, froze or leaked, each named after what went wrong.
import {
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  groupBy,
  map,
  mergeMap,
  NEVER,
  Observable,
  of,
  type OperatorFunction,
  range,
  retry,
  share,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
  toArray,
  windowCount,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { Gate } from '../../src/operators/pressure/gate.js';
import { interleave } from '../../src/operators/data/interleave.js';
import { keepGate } from '../../src/operators/pressure/keepGate.js';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { repeatEpochs } from '../../src/operators/data/repeatEpochs.js';
import { type Sampleable, sampleFrom } from '../../src/operators/sampling/sampleFrom.js';
import { train } from '../../src/operators/training/train.js';
import type { Trainable } from '../../src/operators/training/Trainable.js';
import { datum } from './fakeTrainer.js';
import { gated } from './gated.js';

/** Bounded operators that are full after one value, whose inners never end. */
const full: [string, () => OperatorFunction<number, unknown>][] = [
  ['concatMapAhead', () => concatMapAhead(() => NEVER, { ahead: 0 })],
  ['mergeMapWeighted', () => mergeMapWeighted(() => NEVER, { weight: () => 1, budget: 0 })],
  [
    'interleave',
    () => (source) => interleave([{ source }], { prefetch: 1 }).pipe(concatMapAhead(() => NEVER, { ahead: 0 })),
  ],
  [
    'sampleFrom',
    () => (source) =>
      source.pipe(
        map(() => ({ prompt: datum(2).modelInput })),
        sampleFrom({ sample: () => NEVER } as Sampleable, { concurrency: 1 }),
      ),
  ],
];

describe('a closed gate', () => {
  it.each(full)('of %s that leaves a shared source while full does not stop the other subscriber', (_, bounded) => {
    const shared = gated(100).source.pipe(share());
    const leaving = shared.pipe(bounded()).subscribe();
    const seen: number[] = [];
    let done = false;
    shared.subscribe({ next: (row) => seen.push(row), complete: () => (done = true) });
    leaving.unsubscribe();
    expect([seen.length, done]).toStrictEqual([seen[0] === 0 ? 100 : 100 - seen[0]!, true]);
    expect(seen.at(-1)).toBe(99);
  });

  it.each(full)('of %s that fails on a shared source while full does not stop the other subscriber', (_, bounded) => {
    const shared = gated(100).source.pipe(share());
    const failure = new Subject<never>();
    const failing = (source: Observable<unknown>) =>
      new Observable((subscriber) => {
        failure.subscribe({ error: (error) => subscriber.error(error) });
        return source.subscribe(subscriber);
      });
    shared.pipe(bounded(), failing).subscribe({ error: () => {} });
    let done = false;
    shared.subscribe({ complete: () => (done = true) });
    failure.error(new Error('no'));
    expect(done).toBe(true);
  });

  it('of train is not left closed by a step that fails: share, train and retry go on', () => {
    let passes = 0;
    const first = new Subject<never>();
    const trainer: Trainable = {
      forwardBackward: () => (passes++ === 0 ? first : of({ lossFnOutputType: '', lossFnOutputs: [], metrics: {} })),
      optimStep: () => of({}),
    };
    const shared = gated(10).source.pipe(
      map(() => [datum(2, 1)]),
      share(),
    );
    let [logged, done] = [0, false];
    shared.pipe(train(trainer, { loss: 'cross_entropy' }), retry(2)).subscribe({ complete: () => (done = true) });
    shared.subscribe(() => logged++);
    first.error(new Error('once'));
    // The two rows that had been read before this one came are not among them.
    expect([done, logged]).toStrictEqual([true, 8]);
  });

  it('does not read on into nothing when its operator is left: the source is stopped first', () => {
    for (const [, bounded] of full) {
      const { source, sent } = gated(100);
      const left = source.pipe(bounded()).subscribe();
      const before = sent();
      left.unsubscribe();
      expect(sent()).toBe(before);
    }
  });

  it('does not call one who stopped waiting after it was moved to the parent', () => {
    const calls: string[] = [];
    const parent = new Gate();
    const gate = new Gate(parent);
    parent.set(false);
    gate.set(false);
    const stop = gate.onceOpen(() => calls.push('late'));
    gate.set(true);
    stop();
    parent.set(true);
    expect(calls).toStrictEqual([]);
  });
});

describe('inners that are fed by the source', () => {
  const sum = (rows: Observable<number>) => rows.pipe(toArray());
  const values = <R>(operator: OperatorFunction<number, R>, count = 100) => {
    const seen: R[] = [];
    let done = false;
    gated(count)
      .source.pipe(operator)
      .subscribe({ next: (value) => seen.push(value), complete: () => (done = true) });
    return { seen, done };
  };

  it.each([0, 1, 3])('come through windowCount and concatMapAhead with ahead %i', (ahead) => {
    const ours = values((rows) => rows.pipe(windowCount(10), concatMapAhead(sum, { ahead })));
    expect(ours).toStrictEqual(values((rows) => rows.pipe(windowCount(10), concatMap(sum))));
    expect(ours.done).toBe(true);
  });

  it.each([1, 4, 8])('come through groupBy of 4 keys and mergeMapWeighted with concurrency %i', (concurrency) => {
    const grouped = groupBy((row: number) => row % 4);
    const ours = values((rows) =>
      rows.pipe(grouped, mergeMapWeighted(sum, { weight: () => 1, budget: 100, concurrency })),
    );
    expect(ours).toStrictEqual(values((rows) => rows.pipe(grouped, mergeMap(sum, concurrency))));
    expect(ours.done).toBe(true);
  });
});

describe('data in memory', () => {
  it('does not freeze an endless run: repeatEpochs looks at the gate after each epoch', () => {
    let read = 0;
    const rows = defer(() => {
      // A source that is not stopped fails the test instead of hanging it.
      if (read > 10_000) throw new Error('ran away');
      return from([1, 2, 3]);
    }).pipe(tap(() => read++));
    let started = 0;
    const finish: Subject<never>[] = [];
    rows
      .pipe(
        repeatEpochs(),
        batch({ size: 2 }),
        concatMapAhead(
          () => {
            started++;
            const call = new Subject<never>();
            finish.push(call);
            return call;
          },
          { ahead: 1 },
        ),
      )
      .subscribe({ error: (error: unknown) => expect(error).toBeUndefined() });
    expect(started).toBe(2);
    expect(read).toBeLessThanOrEqual(6);
    finish[0]!.complete();
    expect(started).toBe(3);
  });
});

describe('a source', () => {
  /** Counts its subscriptions. */
  const counted = () => {
    let count = 0;
    return { source: defer(() => (count++, EMPTY as Observable<number>)), count: () => count };
  };

  it('is not subscribed by mergeMapWeighted when its budget has failed', () => {
    const { source, count } = counted();
    const budget = throwError(() => new Error('no budget'));
    source.pipe(mergeMapWeighted(() => EMPTY, { weight: () => 1, budget })).subscribe({ error: () => {} });
    expect(count()).toBe(0);
  });

  it('is not subscribed by interleave once the mix is over', () => {
    const { source, count } = counted();
    interleave([{ source: throwError(() => new Error('no')) }, { source }]).subscribe({ error: () => {} });
    interleave([{ source: EMPTY }, { source }], { until: 'first' }).subscribe();
    interleave([{ source: of(1) }, { source }])
      .pipe(take(1))
      .subscribe();
    expect(count()).toBe(0);
  });

  it('of an inner is not subscribed when project has ended the stream', () => {
    for (const operator of [
      (project: () => Observable<number>) => concatMapAhead(project, { ahead: 0 }),
      (project: () => Observable<number>) => mergeMapWeighted(project, { weight: () => 1, budget: 0 }),
    ]) {
      const { source, count } = counted();
      const stop = new Subject<void>();
      const project = () => {
        stop.next();
        return source;
      };
      of(1).pipe(operator(project), takeUntil(stop)).subscribe();
      expect(count()).toBe(0);
    }
  });

  it('of an inner that ran ahead is not left paused for others who share it', () => {
    const shared = gated(500).source.pipe(share());
    const first = new Subject<number>();
    const left = of(first, shared)
      .pipe(concatMapAhead((inner) => inner, { ahead: 1 }))
      .subscribe();
    let done = false;
    shared.subscribe({ complete: () => (done = true) });
    expect(done).toBe(false);
    left.unsubscribe();
    expect(done).toBe(true);
  });

  it('that two datasets of interleave share is not stopped by the one that is full', () => {
    const opened = new Subject<void>();
    const shared = opened.pipe(
      keepGate(),
      concatMap(() => gated(100).source),
      take(100),
      share(),
    );
    const seen: number[] = [];
    let done = false;
    interleave(
      [
        { source: shared.pipe(filter((row) => row % 10 !== 1)), weight: 1 },
        { source: shared.pipe(filter((row) => row % 10 === 1)), weight: 1 },
      ],
      { prefetch: 4 },
    ).subscribe({ next: (row) => seen.push(row), complete: () => (done = true) });
    opened.next();
    expect([seen.length, done]).toStrictEqual([100, true]);
  });
});

describe('a budget or a sampler that never comes', () => {
  const error = (stream: Observable<unknown>) => {
    let message = 'nothing';
    stream.subscribe({ error: (thrown: Error) => (message = thrown.message), complete: () => (message = 'complete') });
    return message;
  };

  it('is an error where the stream of budgets ends without one', () => {
    const bounded = mergeMapWeighted(() => of(1), { weight: () => 1, budget: EMPTY });
    expect(error(of(1).pipe(bounded))).toBe('the stream of budgets ended without a budget');
  });

  it('is an error where the stream of samplers ends without one, whatever the budget does', () => {
    const prompts = of({ prompt: datum(2).modelInput });
    const samplers = EMPTY as Observable<Sampleable>;
    const message = 'the stream of samplers ended without a sampler';
    expect(error(prompts.pipe(sampleFrom(samplers)))).toBe(message);
    expect(error(prompts.pipe(sampleFrom(samplers, { budgetBytes: NEVER })))).toBe(message);
    expect(error(prompts.pipe(sampleFrom(samplers, { budgetBytes: of(1, 2) })))).toBe(message);
    expect(error(prompts.pipe(sampleFrom(concat(EMPTY, samplers), { settle: true })))).toBe(message);
    expect(
      error(
        range(0, 0).pipe(
          map(() => ({ prompt: datum(2).modelInput })),
          sampleFrom(samplers),
        ),
      ),
    ).toBe(message);
    expect(error(prompts.pipe(sampleFrom(NEVER as Observable<Sampleable>, { budgetBytes: EMPTY })))).toBe(
      'the stream of budgets ended without a budget',
    );
  });
});
