import {
  AsyncSubject,
  concat,
  from,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  type OperatorFunction,
  Subject,
  Subscription,
  take,
  tap,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import type { Context } from 'rxjs-marbles';
import { describe, expect, it, vi } from 'vitest';
import type { TrainingClient } from '../../src/client/TrainingClient.js';
import { batch } from '../../src/operators/data/batch.js';
import { checkpointEvery } from '../../src/operators/training/checkpointEvery.js';
import { evaluateEvery } from '../../src/operators/training/evaluateEvery.js';
import { markBatches } from '../../src/operators/training/markBatches.js';
import { linear } from '../../src/operators/training/schedules.js';
import type { Step } from '../../src/operators/training/step.js';
import { train, type TrainOptions } from '../../src/operators/training/train.js';
import type { Saves, TakesSnapshots, Trainable } from '../../src/operators/training/Trainable.js';
import type { Mark, TrainingBatch } from '../../src/operators/training/trainingBatch.js';
import type { Datum } from '../../src/wire/datum.js';
import { ValidationError } from '../../src/wire/tinkerError.js';
import { TensorData } from '../../src/wire/tensor.js';
import { datum, type FakeSampler, fakeTrainer } from './fakeTrainer.js';
import { firehose, keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const loss = 'cross_entropy';
const values = { a: [datum(2, 1)], b: [datum(2, 1)], c: [datum(2, 1)], d: [datum(2, 1)] };
const indexes = map((step: Step) => String(step.index));

/** A trainer that has every result at once. */
const instant: Trainable & Saves = {
  forwardBackward: () => of({ lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': 1 } }),
  optimStep: () => of({}),
  saveState: () => of({ path: 'tinker://run/weights/x' }),
};

describe('train', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => values.a),
        train(instant, { loss }),
        map(({ index, lossSum }) => [index, lossSum]),
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map(() => values.a),
        train(instant, { loss, adam: { learningRate: throwing } }),
      ),
  });

  it('takes the real client', () => {
    // Fails to compile if it does not.
    const check = (client: TrainingClient): Trainable => client;
    expect(check).toBeTypeOf('function');
  });

  it(
    'submits a step and those ahead at once, the next when one is done, and emits in order',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abcd|)', values);
      const subs = '           (^!)';
      // a at 4, b at 8; c is submitted at 4 behind b: 12; d at 8: 16.
      const expected = '       ----0---1---2---(3|)';
      m.expect(source.pipe(train(trainer, { loss, ahead: 1 }), indexes)).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(log).toStrictEqual(
        Array.from({ length: 4 }, () => [
          'forwardBackward 1 cross_entropy',
          'optimStep {"learningRate":0.0001}',
        ]).flat(),
      );
    }),
  );

  it(
    'waits for each result with ahead 0',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (ab|)', values);
      const expected = '       ----0---(1|)';
      const calls: number[] = [];
      const result = source.pipe(
        train(trainer, { loss, ahead: 0 }),
        tap(() => calls.push(log.length)),
        indexes,
      );
      m.expect(result).toBeObservable(expected);
      m.flush();
      // When the first step came out, the second had not been submitted.
      expect(calls).toStrictEqual([2, 4]);
    }),
  );

  it(
    'tells what a step was made of',
    marbles((m) => {
      const { trainer } = fakeTrainer({ metrics: () => ({ 'loss:sum': 6, 'extra:mean': 2 }) });
      const source = m.cold('  (a|)', { a: [datum(2, 1), datum(3, 0.5)] });
      const expected = '       ----(s|)';
      const step = {
        index: 0,
        // Weights 2 · 1 + 3 · 0.5
        loss: 6 / 3.5,
        lossSum: 6,
        metrics: { 'loss:sum': 6, 'extra:mean': 2 },
        datums: 2,
        tokens: 5,
        learningRate: 0.5,
        batches: 1,
        durationMs: 4,
      };
      m.expect(source.pipe(train(trainer, { loss, adam: { learningRate: 0.5 } }))).toBeObservable(expected, {
        s: step,
      });
    }),
  );

  it.each<[string, Parameters<typeof train>[1]['loss'], Step['loss'], Parameters<typeof fakeTrainer>[0], boolean]>([
    ['per weight where every datum has weights', loss, 8 / 4, { metrics: () => ({ 'loss:sum': 8 }) }, true],
    ['per datum where one has none', loss, 8 / 2, { metrics: () => ({ 'loss:sum': 8 }) }, false],
    ['as it is for a function', () => ({ loss: 8, gradients: [] }), 8, { metrics: () => ({ 'loss:sum': 8 }) }, true],
    [
      'from the elementwise loss of a server that sends no metrics',
      loss,
      6 / 4,
      {
        metrics: () => ({}),
        outputs: () => [1, 2].map((sum) => ({ elementwise_loss: TensorData.from([sum, sum], 'float32') })),
      },
      true,
    ],
    ['NaN where nothing tells it', loss, NaN, { metrics: () => ({}) }, true],
  ])('gives the loss %s', async (_, chosen, expected, options, weighted) => {
    const { trainer } = fakeTrainer({ ...options, passMs: 0 });
    const data = [datum(2, 1), datum(2, weighted ? 1 : undefined)];
    const step = await lastValueFrom(of(data).pipe(train(trainer, { loss: chosen })));
    expect(step.loss).toBe(expected);
  });

  it('lost a metric called __proto__', async () => {
    const metrics = JSON.parse('{"loss:sum":1,"__proto__":5,"constructor":2}') as Record<string, number>;
    const { trainer } = fakeTrainer({ passMs: 0, saveMs: 0, metrics: () => metrics });
    const marked = of([datum(2, 1)]).pipe(checkpointEvery({ steps: 1 }));
    const step = await lastValueFrom(marked.pipe(train(trainer, { loss })));
    expect(Object.entries(step.metrics)).toEqual(Object.entries(metrics));
    expect(step.checkpoint).toBeDefined();
  });

  it('takes weights in every form a tensor may have', async () => {
    const { trainer } = fakeTrainer({ passMs: 0, metrics: () => ({ 'loss:sum': 12 }) });
    const [{ modelInput }] = [datum(2)];
    const data = [
      [1, 1],
      [
        [1, 0],
        [0, 1],
      ],
      new Float64Array([1, 1]),
      TensorData.from([1, 1], 'float32'),
    ].map((weights) => ({
      modelInput,
      lossFnInputs: { weights },
    }));
    expect((await lastValueFrom(of(data).pipe(train(trainer, { loss })))).loss).toBe(12 / 8);
  });

  it('follows a schedule, and passes on what else the optimizer takes', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0 });
    const adam = { learningRate: linear(1, { steps: 4 }), beta2: 0.99 };
    const steps = await lastValueFrom(from(Object.values(values)).pipe(train(trainer, { loss, adam }), toArray()));
    expect(steps.map((step) => step.learningRate)).toStrictEqual([1, 0.75, 0.5, 0.25]);
    expect(log[3]).toBe('optimStep {"beta2":0.99,"learningRate":0.75}');
    const other = fakeTrainer({ passMs: 0 });
    const optimizer = { type: 'dimuon', learningRate: 0.3 } as const;
    await lastValueFrom(of(values.a).pipe(train(other.trainer, { loss, optimizer, lossFnConfig: { beta: 2 } })));
    expect(other.log).toStrictEqual([
      'forwardBackward 1 cross_entropy{"beta":2}',
      'optimStep {"type":"dimuon","learningRate":0.3}',
    ]);
  });

  it('adds up the gradients of several batches, also of the fewer at the end', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0 });
    const three = [values.a, values.b, values.c];
    const steps = await lastValueFrom(from(three).pipe(train(trainer, { loss, accumulate: 2 }), toArray()));
    expect(log.map((call) => call.split(' ')[0])).toStrictEqual([
      ...['forwardBackward', 'forwardBackward', 'optimStep'],
      ...['forwardBackward', 'optimStep'],
    ]);
    expect(steps.map(({ index, batches, datums, lossSum }) => [index, batches, datums, lossSum])).toStrictEqual([
      [0, 2, 2, 10 + 9],
      [1, 3, 1, 8],
    ]);
  });

  it('takes several optimizer steps a batch, over parts that differ by at most one and are never empty', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0 });
    const data = [Array.from({ length: 5 }, () => datum(2, 1)), [datum(2, 1)]];
    const steps = await lastValueFrom(from(data).pipe(train(trainer, { loss, substeps: 2 }), toArray()));
    expect(log.filter((call) => call.startsWith('forward'))).toStrictEqual([
      'forwardBackward 2 cross_entropy',
      'forwardBackward 3 cross_entropy',
      'forwardBackward 1 cross_entropy',
    ]);
    expect(log.map((call) => call.split(' ')[0]).slice(0, 4)).toStrictEqual([
      ...['forwardBackward', 'optimStep'],
      ...['forwardBackward', 'optimStep'],
    ]);
    expect(steps.map(({ datums }) => datums)).toStrictEqual([5, 1]);
  });

  it('counts the cycles between steps, by the last part of each', async () => {
    const clocks = [
      { 'clock_cycle:unique': 7 },
      { 'clock_cycle:unique': 8 },
      { 'clock_cycle:unique': 9, 'clock_cycle:unique_1': 10 },
      {},
    ];
    const { trainer } = fakeTrainer({ passMs: 0, metrics: (pass) => clocks[pass]! });
    const steps = await lastValueFrom(from(Object.values(values)).pipe(train(trainer, { loss }), toArray()));
    expect(steps.map((step) => step.cycles)).toStrictEqual([undefined, 1, 2, undefined]);
  });

  it('keeps the outputs when told to', async () => {
    const { trainer } = fakeTrainer({ passMs: 0 });
    const step = await lastValueFrom(of(values.a).pipe(train(trainer, { loss, keepOutputs: true })));
    expect(step.outputs).toHaveLength(1);
    expect((await lastValueFrom(of(values.a).pipe(train(trainer, { loss })))).outputs).toBeUndefined();
  });

  it(
    'saves in turn, right after the step, while later steps are submitted and do not wait',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4, saveMs: 7 });
      const source = m.cold('  (abcd|)', values);
      // Step 1 waits for its save until 15, step 2 (done at 12) comes behind it; step 3 (done at 16) for its save until 23.
      const expected = '       ----0----------(12)----(3|)';
      const result = source.pipe(checkpointEvery({ steps: 2 }), train(trainer, { loss, ahead: 1 }), indexes);
      m.expect(result).toBeObservable(expected);
      m.flush();
      expect(
        log.map((call) =>
          call
            .split(' ')
            .slice(0, call.startsWith('save') ? 2 : 1)
            .join(' '),
        ),
      ).toStrictEqual([
        ...['forwardBackward', 'optimStep'],
        ...['forwardBackward', 'optimStep', 'saveState step-000002'],
        ...['forwardBackward', 'optimStep'],
        ...['forwardBackward', 'optimStep', 'saveState step-000004'],
      ]);
    }),
  );

  it('gives a checkpoint its place, its paths and its end', async () => {
    const { trainer } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const scheduler = { now: () => 500, schedule: () => Subscription.EMPTY };
    const options = { steps: 2, kind: 'both', ttlSeconds: 3600, name: (steps: number) => `s${steps}` } as const;
    const [, step] = await lastValueFrom(
      from([values.a, values.b]).pipe(checkpointEvery(options), train(trainer, { loss, scheduler }), toArray()),
    );
    expect(step!.checkpoint).toStrictEqual({
      name: 's2',
      steps: 2,
      batches: 2,
      statePath: 'tinker://run/weights/s2@2',
      samplerPath: 'tinker://run/sampler_weights/s2@2',
      kept: false,
      expiresAtMs: 500 + 3_600_000,
    });
  });

  it('names a checkpoint by steps where it accumulates, and saves after the step a marked batch is in', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const steps = await lastValueFrom(
      from(Object.values(values)).pipe(
        checkpointEvery({ steps: 1 }),
        train(trainer, { loss, accumulate: 2 }),
        toArray(),
      ),
    );
    expect(steps.map(({ checkpoint }) => [checkpoint?.name, checkpoint?.batches, checkpoint?.statePath])).toStrictEqual(
      [
        ['step-000001', 2, 'tinker://run/weights/step-000001@1'],
        ['step-000002', 4, 'tinker://run/weights/step-000002@2'],
      ],
    );
    expect(log.filter((call) => call.startsWith('save'))).toStrictEqual([
      'saveState step-000001',
      'saveState step-000002',
    ]);
  });

  it('makes one checkpoint of several wanted after one step', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const step = await lastValueFrom(
      of(values.a).pipe(
        checkpointEvery({ steps: 1, ttlSeconds: 3600 }),
        checkpointEvery({ steps: 1, kind: 'sampler' }),
        train(trainer, { loss }),
      ),
    );
    expect(log.slice(2)).toStrictEqual(['saveState step-000001', 'saveWeightsForSampler step-000001']);
    expect(step.checkpoint).toMatchObject({ kept: true, steps: 1 });
    expect(step.checkpoint).not.toHaveProperty('expiresAtMs');
  });

  it('calls marks of your own in turn, once a step, and adds what they give', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const mark: Mark<Saves> = (client, { index, steps, batches, last, start }) => {
      log.push(`mark ${index} ${steps} ${batches} ${last}`);
      const exported = start(client.saveState(`export-${steps}`, {}));
      return {
        adds: exported.pipe(map(({ path }) => ({ metrics: { exported: path.length } }))),
        afterwards: (step) => of(log.push(`after ${step.index}`)),
      };
    };
    const steps = await lastValueFrom(
      from(Object.values(values)).pipe(
        markBatches(mark, { atEnd: true }),
        train(trainer, { loss, accumulate: 2 }),
        tap(({ index }) => log.push(`out ${index}`)),
        toArray(),
      ),
    );
    const pass = 'forwardBackward 1 cross_entropy';
    const update = 'optimStep {"learningRate":0.0001}';
    expect(log).toStrictEqual([
      ...[pass, pass, update, 'mark 0 1 2 false', 'saveState export-1'],
      ...[pass, pass, update, 'mark 1 2 4 true', 'saveState export-2'],
      ...['out 0', 'after 0', 'out 1', 'after 1'],
    ]);
    expect(steps[0]!.metrics).toStrictEqual({ 'loss:sum': 19, exported: 'tinker://run/weights/export-1@1'.length });
  });

  it('takes a mark that gives nothing, and fails with one that throws', async () => {
    const { trainer } = fakeTrainer({ passMs: 0 });
    const run = (mark: Mark) => lastValueFrom(of(values.a).pipe(markBatches(mark), train(trainer, { loss })));
    expect(await run(() => {})).toMatchObject({ index: 0 });
    expect(await run(() => ({ adds: [] }))).toMatchObject({ index: 0 });
    const throws = () => {
      throw new Error('no mark');
    };
    await expect(run(throws)).rejects.toThrow('no mark');
  });

  it.each<[string, OperatorFunction<readonly Datum[], TrainingBatch<Saves & TakesSnapshots>>]>([
    ['5,000 slow saves', checkpointEvery({ steps: 1 })],
    ['300 snapshots for slow evaluations', evaluateEvery({ steps: 1, evaluate: () => NEVER })],
  ])('does not put %s under way, but waits after pendingMarks of them', (_, marks) => {
    const { source, sent } = gated(5000);
    let saves = 0;
    const trainer: Trainable & Saves & TakesSnapshots<never> = {
      forwardBackward: () => of({ lossFnOutputType: '', lossFnOutputs: [], metrics: {} }),
      optimStep: () => of({}),
      saveState: () => (saves++, NEVER),
      saveWeightsAndGetSamplingClient: () => (saves++, of({}) as Observable<never>),
    };
    source
      .pipe(
        map(() => values.a),
        marks,
        train(trainer, { loss, ahead: 1, pendingMarks: 3 }),
      )
      .subscribe();
    expect([saves, sent()]).toStrictEqual([3, 3]);
  });

  it('holds at most 64 finished steps behind one whose save is slow', () => {
    const { source, sent } = gated(5000);
    const saves: Subject<{ path: string }>[] = [];
    const trainer: Trainable & Saves = {
      forwardBackward: () => of({ lossFnOutputType: '', lossFnOutputs: [], metrics: {} }),
      optimStep: () => of({}),
      saveState: () => saves[saves.push(new Subject()) - 1]!,
    };
    let out = 0;
    source
      .pipe(
        map(() => values.a),
        checkpointEvery({ steps: 100 }),
        train(trainer, { loss, ahead: 1 }),
      )
      .subscribe(() => out++);
    expect([out, sent()]).toStrictEqual([99, 99 + 65]);
    saves[0]!.next({ path: 'x' });
    saves[0]!.complete();
    expect([out, sent()]).toStrictEqual([199, 199 + 65]);
  });

  it.each<[string, Datum[], { accumulate: number } | { substeps: number }, string]>([
    ['an empty batch', [], { accumulate: 1 }, 'batch 1 is empty: a step needs at least one datum'],
    ['an empty batch that has substeps', [], { substeps: 2 }, 'batch 1 is empty: a step needs at least one datum'],
    [
      'a batch in which no token carries a loss',
      [datum(2, 0), datum(3, 0)],
      { accumulate: 1 },
      'batch 1 has nothing to train: every weight of its 2 datums is 0. ' +
        'Is there a turn of the assistant in the rows, and within the maximum length?',
    ],
  ])('fails with %s, in its turn, instead of dropping it', async (_, bad, options, message) => {
    const { trainer } = fakeTrainer({ passMs: 0 });
    const seen: number[] = [];
    const steps = from([values.a, bad, values.b]).pipe(
      train(trainer, { loss, ...options }),
      tap(({ index }) => seen.push(index)),
    );
    await expect(lastValueFrom(steps)).rejects.toThrow(new ValidationError(message));
    expect(seen).toStrictEqual([0]);
  });

  it('trains on weights that add up to 0, and on none at all', async () => {
    const { trainer } = fakeTrainer({ passMs: 0 });
    const data = [[datum(2, 1), datum(2, -1)], [datum(2)]];
    expect(await lastValueFrom(from(data).pipe(train(trainer, { loss }), toArray()))).toHaveLength(2);
    const zero = of([datum(2, 0)]).pipe(train(trainer, { loss: 'importance_sampling' }), toArray());
    expect(await lastValueFrom(zero)).toHaveLength(1);
  });

  it(
    'evaluates snapshots while training goes on, one at a time, none skipped, and waits for the last',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abcd|)', values);
      // Evaluations of 10 ms start at 4, and, one at a time, at 14, 24 and 34; steps are done at 4, 8, 12, 16.
      const evaluate = (sampler: FakeSampler, { index }: { index: number }) =>
        timer(10).pipe(map(() => ({ index, steps: sampler.steps })));
      const expected = '       --------0---1---2---------------------------(3|)';
      const result = source.pipe(
        evaluateEvery({ steps: 1, evaluate }),
        train(trainer, { loss }),
        tap(({ index, evaluations }) => seen.push([index, (evaluations ?? []).map((done) => done.metrics)])),
        indexes,
      );
      const seen: unknown[] = [];
      m.expect(result).toBeObservable(expected);
      m.flush();
      expect(seen).toStrictEqual([
        [0, []],
        [1, []],
        [2, [{ index: 0, steps: 1 }]],
        [3, [1, 2, 3].map((index) => ({ index, steps: index + 1 }))],
      ]);
    }),
  );

  it(
    'lets steps out at once while no evaluation is running',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abc|)', values);
      const evaluate = (_: FakeSampler) => timer(1).pipe(map(() => ({ accuracy: 1 })));
      const expected = '       ----0----1--(2|)';
      const result = source.pipe(
        evaluateEvery({ steps: 2, evaluate }),
        train(trainer, { loss }),
        tap(({ index, evaluations }) => seen.push(`${index}: ${evaluations?.length ?? 0}`)),
        indexes,
      );
      const seen: unknown[] = [];
      m.expect(result).toBeObservable(expected);
      m.flush();
      expect(seen).toStrictEqual(['0: 0', '1: 1', '2: 0']);
    }),
  );

  it(
    'fails with an evaluation, after the step that was held back',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (a|)', values);
      const expected = '       ------(0#)';
      const evaluate = (_: FakeSampler) =>
        timer(2).pipe(
          map((): never => {
            throw new Error('no grades');
          }),
        );
      const result = source.pipe(evaluateEvery({ steps: 1, evaluate }), train(trainer, { loss }), indexes);
      m.expect(result).toBeObservable(expected, undefined, new Error('no grades'));
    }),
  );

  it(
    'fails with a pass in its turn, and submits nothing more',
    marbles((m) => {
      const { trainer, log, cancelled } = fakeTrainer({ passMs: 4, fails: (pass) => pass === 1 });
      const source = m.cold('  (abcd|)', values);
      const expected = '       ----0---#';
      m.expect(source.pipe(train(trainer, { loss }), indexes)).toBeObservable(
        expected,
        undefined,
        new Error('pass 1 failed'),
      );
      m.flush();
      expect(log).toHaveLength(6);
      // Its own optimizer step and the third step were under way; the wait for them is over.
      expect(cancelled).toStrictEqual(log.slice(3));
    }),
  );

  it(
    'fails with a save in its turn',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4 });
      const broken: Trainable & Saves = { ...trainer, saveState: () => throwError(() => new Error('disk full')) };
      const source = m.cold('  (abc|)', values);
      const expected = '       ----0---#';
      const result = source.pipe(checkpointEvery({ steps: 2 }), train(broken, { loss }), indexes);
      m.expect(result).toBeObservable(expected, undefined, new Error('disk full'));
    }),
  );

  it(
    'passes an error of the source after the steps before it',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (ab#)', values);
      const subs = '           (^!)';
      const expected = '       ----0---(1#)';
      m.expect(source.pipe(train(trainer, { loss }), indexes)).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'fails with what a schedule throws, and for a trainer that lacks what a mark needs',
    marbles((m) => {
      const { trainer } = fakeTrainer();
      const { forwardBackward, optimStep } = trainer;
      const source = m.cold('  (a|)', values);
      const throws = () => {
        throw new Error('no rate');
      };
      m.expect(source.pipe(train(trainer, { loss, adam: { learningRate: throws } }))).toBeObservable(
        '#',
        undefined,
        new Error('no rate'),
      );
      // What types would refuse.
      const bare = { forwardBackward, optimStep } as unknown as Trainable & Saves;
      const message = (method: string, feature: string) =>
        new TypeError(`the trainer has no ${method}, which ${feature} needs`);
      m.expect(source.pipe(checkpointEvery({ steps: 1 }), train(bare, { loss }))).toBeObservable(
        '#',
        undefined,
        message('saveState', 'a checkpoint'),
      );
      m.expect(source.pipe(train(bare, { loss: () => ({ loss: 0, gradients: [] }) }))).toBeObservable(
        '#',
        undefined,
        message('forwardBackwardCustom', 'a custom loss'),
      );
    }),
  );

  it(
    'completes with an empty source, and stays silent with a silent one',
    marbles((m) => {
      const { trainer, log } = fakeTrainer();
      const empty = m.cold('   --|', values);
      const silent = m.cold('  ----', values);
      const unsub = '          ---!';
      const subs = '           ^--!';
      m.expect(empty.pipe(train(trainer, { loss }))).toBeObservable('--|');
      m.expect(silent.pipe(train(trainer, { loss })), unsub).toBeObservable('----');
      m.expect(silent).toHaveSubscriptions(subs);
      m.flush();
      expect(log).toStrictEqual([]);
    }),
  );

  it(
    'stops submitting and waiting when unsubscribed',
    marbles((m) => {
      const { trainer, log, cancelled } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abcd|)', values);
      const unsub = '          ------!';
      const expected = '       ----0--';
      m.expect(source.pipe(train(trainer, { loss, ahead: 1 }), indexes), unsub).toBeObservable(expected);
      m.flush();
      expect(log).toHaveLength(6);
      expect(cancelled).toStrictEqual(log.slice(2));
    }),
  );

  it(
    'counts for every subscriber by itself',
    marbles((m) => {
      const { trainer } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (ab|)', values);
      const steps = source.pipe(train(trainer, { loss, ahead: 0 }), indexes);
      m.expect(concat(steps, steps)).toBeObservable('----0---1---0---(1|)');
    }),
  );

  it('reads no further ahead than it submits', () => {
    const { source, sent } = gated();
    const calls: Subject<never>[] = [];
    const trainer: Trainable = {
      forwardBackward: () => {
        const call = new Subject<never>();
        calls.push(call);
        return call;
      },
      optimStep: () => of({}),
    };
    source
      .pipe(
        map(() => datum(2, 1)),
        batch({ size: 10 }),
        train(trainer, { loss, ahead: 2 }),
      )
      .subscribe({ error: () => {} });
    expect([calls.length, sent()]).toStrictEqual([3, 30]);
  });

  it('stops a synchronous source when its subscriber has enough', () => {
    const { source, read } = firehose();
    const trainer: Trainable = {
      forwardBackward: () => of({ lossFnOutputType: '', lossFnOutputs: [], metrics: {} }),
      optimStep: () => of({}),
    };
    const seen: number[] = [];
    source
      .pipe(
        map(() => values.a),
        train(trainer, { loss }),
        take(3),
      )
      .subscribe(({ index }) => seen.push(index));
    expect(seen).toStrictEqual([0, 1, 2]);
    expect(read()).toBe(3);
  });

  it('fails where a call gives no result', () => {
    const errors: unknown[] = [];
    const trainer: Trainable = { forwardBackward: () => NEVER, optimStep: () => [] };
    of(values.a)
      .pipe(train(trainer, { loss }))
      .subscribe({ error: (error) => errors.push(error) });
    expect(errors).toMatchObject([{ name: 'EmptyError' }]);
  });

  it.each([
    [{ accumulate: 0 }, 'accumulate must be an integer >= 1, got 0'],
    [{ substeps: 1.5 }, 'substeps must be an integer >= 1, got 1.5'],
    [{ accumulate: 2, substeps: 2 }, 'accumulate and substeps cannot both be above 1'],
    [{ adam: {}, optimizer: { type: 'x' } }, 'adam and optimizer cannot both be given'],
    [{ ahead: -1 }, 'ahead must be >= 0, got -1'],
    [{ pendingMarks: 0 }, 'pendingMarks must be an integer >= 1, got 0'],
  ])('refuses %j', (options, message) => {
    expect(() => of(values.a).pipe(train(fakeTrainer().trainer, { loss, ...options } as TrainOptions))).toThrow(
      new RangeError(message),
    );
  });

  describe('on a service that works in lock-step cycles of ten seconds, one optimizer step of a model in each', () => {
    /** What is in the queue at the start of a cycle runs in it, up to the first optimizer step and the saves behind it. */
    function lockStep(cycleMs: number) {
      const queue: { readonly kind: 'pass' | 'step' | 'save'; readonly done: (cycle: number) => void }[] = [];
      let steps = 0;
      const enqueue = <T>(kind: 'pass' | 'step' | 'save', result: (cycle: number) => T, extraMs = 0): Observable<T> => {
        const answer = new AsyncSubject<T>();
        // A result is read a moment after its cycle, when the next one has begun.
        const done = (cycle: number) => {
          const value = result(cycle);
          timer(cycleMs + 100 + extraMs).subscribe(() => {
            answer.next(value);
            answer.complete();
          });
        };
        queue.push({ kind, done });
        return answer;
      };
      const clock = timer(cycleMs, cycleMs).subscribe((cycle) => {
        let stepped = false;
        while (queue.length > 0 && !(stepped && queue[0]!.kind !== 'save')) {
          const { kind, done } = queue.shift()!;
          stepped ||= kind === 'step';
          done(cycle);
        }
      });
      const output = (cycle: number) => ({
        lossFnOutputType: '',
        lossFnOutputs: [],
        metrics: { 'clock_cycle:unique': cycle },
      });
      const trainer: Trainable & Saves = {
        forwardBackward: () => enqueue('pass', output),
        optimStep: () => enqueue('step', () => (steps++, {})),
        // Writing a checkpoint takes the service two further cycles.
        saveState: (name) => enqueue('save', () => ({ path: `tinker://run/weights/${name}@${steps}` }), 2 * cycleMs),
      };
      return { trainer, stop: () => clock.unsubscribe() };
    }
    const run = (m: Context, ahead: number, save: boolean): Step[] => {
      const { trainer, stop } = lockStep(10_000);
      const seen: Step[] = [];
      from(Array.from({ length: 100 }, () => values.a))
        .pipe(save ? checkpointEvery({ steps: 5 }) : map((data) => data), train(trainer, { loss, ahead }))
        .subscribe({ next: (step) => seen.push(step), complete: stop });
      m.flush();
      return seen;
    };
    const meanCycles = (steps: readonly Step[]) =>
      steps.slice(1).reduce((sum, step) => sum + step.cycles!, 0) / (steps.length - 1);

    it(
      'takes one cycle a step with ahead 1, where it takes two with ahead 0',
      marbles((m) => {
        expect(meanCycles(run(m, 1, false))).toBe(1);
        expect(meanCycles(run(m, 0, false))).toBe(2);
      }),
    );

    it(
      'takes no more with a save every 5 steps, each of exactly the step its name says',
      marbles((m) => {
        const steps = run(m, 1, true);
        expect(meanCycles(steps)).toBe(1);
        const saved = steps.flatMap(({ checkpoint }) => checkpoint ?? []);
        expect(saved).toHaveLength(20);
        for (const { name, steps: count, statePath } of saved)
          expect(statePath).toBe(`tinker://run/weights/${name}@${count}`);
      }),
    );
  });

  describe('warns once of a run that diverges', () => {
    const run = (losses: readonly number[], options: Partial<TrainOptions> = {}) => {
      const warnings: string[] = [];
      const warned = vi
        .spyOn(process, 'emitWarning')
        .mockImplementation((message) => void warnings.push(String(message)));
      let next = 0;
      const trainer: Trainable = {
        forwardBackward: () =>
          of({ lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': losses[next++]! } }),
        optimStep: () => of({}),
      };
      const steps: Step[] = [];
      from(losses)
        .pipe(
          map(() => [datum(2, 1)]),
          train(trainer, { loss: 'cross_entropy', ...options } as TrainOptions),
        )
        .subscribe((step) => steps.push(step));
      warned.mockRestore();
      return { warnings, told: steps.flatMap(({ index, warning }) => (warning === undefined ? [] : [index])) };
    };

    it('where the loss is 30 times that of the first step', () => {
      const { warnings, told } = run([1, 1, 1, 29, 31, 40]);
      expect(told).toStrictEqual([4]);
      expect(warnings).toStrictEqual([expect.stringContaining('after 5 steps, the loss is 15.5, at least 30 times')]);
    });

    it('where the loss is no longer a number', () => {
      expect(run([1, NaN, NaN]).told).toStrictEqual([1]);
      expect(run([NaN, NaN]).told).toStrictEqual([]);
      expect(run([0.01, 0.02, 0.9, NaN], { loss: 'ppo' }).told).toStrictEqual([3]);
    });
  });
});
