import { concat, defer, from, ignoreElements, lastValueFrom, map, of, tap, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { checkpointEvery, type CheckpointEveryOptions } from '../../src/operators/checkpointEvery.js';
import { train } from '../../src/operators/train.js';
import type { Checkpoint, CheckpointMark, MarkedBatch } from '../../src/operators/trainingBatch.js';
import type { Datum } from '../../src/wire/datum.js';
import { type firehose, keepsContract } from './contract.js';
import { datum, fakeTrainer } from './fakeTrainer.js';
import { marbles } from './marbles.js';

const rows = (source: ReturnType<typeof firehose>['source']) => source.pipe(map((): readonly Datum[] => []));
const marked = (options: CheckpointEveryOptions, count: number) =>
  lastValueFrom(
    from(Array.from({ length: count }, (): readonly Datum[] => [])).pipe(checkpointEvery(options), toArray()),
  );
const checkpointOf = (batch: MarkedBatch<unknown>) => batch.marks[0] as CheckpointMark | undefined;

describe('checkpointEvery', () => {
  keepsContract({ operator: () => (source) => rows(source).pipe(checkpointEvery({ steps: 2 })), readsForThree: 3 });

  it(
    'marks every so many batches, without holding any back',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--------!';
      const expected = '       -n-y-n-y-|';
      const result = rows(source).pipe(
        checkpointEvery({ steps: 2 }),
        map((batch) => (batch.marks.length > 0 ? 'y' : 'n')),
      );
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'marks the last batch too when told to, and then holds each back until the next',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|');
      const expected = '       ---n-y-(y|)';
      const result = rows(source).pipe(
        checkpointEvery({ steps: 2, atEnd: true }),
        map((batch) => (batch.marks.length > 0 ? 'y' : 'n')),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it('does not mark the last batch twice', async () => {
    const batches = await marked({ steps: 2, atEnd: true }, 4);
    expect(batches.map((batch) => batch.marks.length)).toStrictEqual([0, 1, 0, 1]);
  });

  it('numbers bare batches, and goes by the numbers of those that have one', async () => {
    const from7 = [7, 8, 9].map((position): MarkedBatch<unknown> => ({ data: [], position, marks: [] }));
    const batches = await lastValueFrom(from(from7).pipe(checkpointEvery({ steps: 4 }), toArray()));
    expect(batches.map(({ position, marks }) => [position, marks.length])).toStrictEqual([
      [7, 1],
      [8, 0],
      [9, 0],
    ]);
    expect((await marked({ steps: 1 }, 2)).map(({ position }) => position)).toStrictEqual([0, 1]);
  });

  it('leaves the marks of others alone', async () => {
    const batches = await lastValueFrom(
      of<readonly Datum[]>([]).pipe(checkpointEvery({ steps: 1 }), checkpointEvery({ steps: 1, kind: 'sampler' })),
    );
    expect(batches.marks.map((mark) => mark.type === 'checkpoint' && mark.kind)).toStrictEqual(['state', 'sampler']);
  });

  it('keeps all for good, unless some may pass', async () => {
    const kept = async (options: CheckpointEveryOptions) =>
      (await marked(options, 4)).map((batch) => [checkpointOf(batch)!.kept, checkpointOf(batch)!.ttlSeconds]);
    expect(await kept({ steps: 1 })).toStrictEqual(Array(4).fill([true, undefined]));
    expect(await kept({ steps: 1, ttlSeconds: 3600 })).toStrictEqual(Array(4).fill([false, 3600]));
    expect(await kept({ steps: 1, ttlSeconds: 3600, keepEvery: 2 })).toStrictEqual([
      [false, 3600],
      [true, undefined],
      [false, 3600],
      [true, undefined],
    ]);
  });

  it('removes all but the last few of those that may pass, and only once the step with a newer one is out', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const remove = (path: string) => defer(() => of(log.push(`remove ${path}`)));
    const data = Array.from({ length: 6 }, () => [datum(2, 1)]);
    const options = { steps: 1, keepEvery: 3, keepLast: 1, remove };
    const steps = from(data).pipe(
      checkpointEvery(options),
      train(trainer, { loss: 'cross_entropy' }),
      tap(({ checkpoint }) => log.push(`out ${checkpoint!.name}`)),
    );
    await lastValueFrom(steps);
    expect(log.filter((call) => /^(out|remove)/.test(call))).toStrictEqual([
      'out step-000001',
      'out step-000002',
      'remove tinker://run/weights/step-000001@1',
      'out step-000003',
      'out step-000004',
      'remove tinker://run/weights/step-000002@2',
      'out step-000005',
      'remove tinker://run/weights/step-000004@4',
      'out step-000006',
    ]);
  });

  it('fails with a removal that fails', async () => {
    const { trainer } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const remove = () => throwError(() => new Error('locked'));
    const steps = from([[datum(2)], [datum(2)]]).pipe(
      checkpointEvery({ steps: 1, keepLast: 1, remove }),
      train(trainer, { loss: 'cross_entropy' }),
    );
    await expect(lastValueFrom(steps)).rejects.toThrow('locked');
  });

  it('remembers what it saved for every subscriber by itself', async () => {
    const removed: string[] = [];
    const remove = (path: string) => of(removed.push(path));
    const batches = of<readonly Datum[]>([]).pipe(checkpointEvery({ steps: 1, keepLast: 1, remove }));
    const checkpoint: Checkpoint = { name: 'x', steps: 1, batches: 1, statePath: 'x', kept: false };
    const save = batches.pipe(
      map((batch) => checkpointOf(batch)!.afterwards!(checkpoint)),
      ignoreElements(),
    );
    await lastValueFrom(concat(save, save, of(1)));
    expect(removed).toStrictEqual([]);
  });

  it.each<[Partial<CheckpointEveryOptions>, string]>([
    [{ steps: 0 }, 'steps must be an integer >= 1, got 0'],
    [{ keepEvery: 3 }, 'keepEvery must be a multiple of steps (2), got 3'],
    [{ keepLast: 0 }, 'keepLast must be >= 1, got 0'],
    [{ keepLast: 1 }, 'keepLast needs remove'],
  ])('refuses %j', (options, message) => {
    expect(() => checkpointEvery({ steps: 2, ...options })).toThrow(new RangeError(message));
  });
});
