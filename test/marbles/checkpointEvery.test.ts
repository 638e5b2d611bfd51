import {
  concat,
  concatMap,
  defer,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  type Observable,
  of,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { checkpointEvery, type CheckpointEveryOptions } from '../../src/operators/training/checkpointEvery.js';
import { markBatches } from '../../src/operators/training/markBatches.js';
import type { Step } from '../../src/operators/training/step.js';
import { train } from '../../src/operators/training/train.js';
import type { Checkpoint, MarkedBatch, TrainingBatch } from '../../src/operators/training/trainingBatch.js';
import type { Datum } from '../../src/wire/datum.js';
import { carryOut, saving } from './carryOut.js';
import { type firehose, keepsContract } from './contract.js';
import { datum, fakeTrainer } from './fakeTrainer.js';
import { marbles } from './marbles.js';

const rows = (source: ReturnType<typeof firehose>['source']) => source.pipe(map((): readonly Datum[] => []));
const batches = (count: number) => from(Array.from({ length: count }, (): readonly Datum[] => []));
/** What is saved after each of `count` batches, with one step a batch. */
const saved = (options: CheckpointEveryOptions, count: number) =>
  lastValueFrom(
    batches(count).pipe(
      checkpointEvery(options),
      map((batch) => {
        const trainer = saving();
        carryOut(batch, trainer);
        return trainer.saved.join();
      }),
      toArray(),
    ),
  );

describe('checkpointEvery', () => {
  keepsContract({
    operator: () => (source) =>
      rows(source).pipe(
        checkpointEvery({ steps: 2 }),
        map((batch) => [batch.position, carryOut(batch, saving()).length]),
      ),
    readsForThree: 3,
  });

  it(
    'saves after every so many steps, without holding any back',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--------!';
      const expected = '       -n-y-n-y-|';
      const result = rows(source).pipe(
        checkpointEvery({ steps: 2 }),
        map((batch) => (carryOut(batch, saving()).length > 0 ? 'y' : 'n')),
      );
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'saves after the last step too when told to, and then holds each batch back until the next',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|');
      const expected = '       ---n-y-(y|)';
      const result = rows(source).pipe(
        checkpointEvery({ steps: 2, atEnd: true }),
        map((batch) => (carryOut(batch, saving()).length > 0 ? 'y' : 'n')),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it('does not save twice after the last step', async () => {
    expect(await saved({ steps: 2, atEnd: true }, 4)).toStrictEqual(['', 'state step-000002', '', 'state step-000004']);
  });

  it('numbers bare batches, and leaves the numbers of those that have one', async () => {
    const from7 = [7, 8].map((position): MarkedBatch => ({ data: [], position, marks: [] }));
    const positions = async (source: Observable<TrainingBatch>) =>
      (await lastValueFrom(source.pipe(checkpointEvery({ steps: 4 }), toArray()))).map(({ position }) => position);
    expect(await positions(from(from7))).toStrictEqual([7, 8]);
    expect(await positions(batches(2))).toStrictEqual([0, 1]);
  });

  it('leaves the marks of others alone', async () => {
    const seen: string[] = [];
    const batch = await lastValueFrom(
      batches(1).pipe(
        markBatches(() => void seen.push('mine')),
        checkpointEvery({ steps: 1 }),
      ),
    );
    const trainer = saving();
    carryOut(batch, trainer);
    expect([seen, trainer.saved]).toStrictEqual([['mine'], ['state step-000001']]);
  });

  it('keeps all for good, unless some may pass', async () => {
    const all = ['state step-000001', 'state step-000002', 'state step-000003', 'state step-000004'];
    const passing = all.map((save) => `${save} 3600`);
    expect(await saved({ steps: 1 }, 4)).toStrictEqual(all);
    expect(await saved({ steps: 1, ttlSeconds: 3600 }, 4)).toStrictEqual(passing);
    expect(await saved({ steps: 1, ttlSeconds: 3600, keepEvery: 2 }, 4)).toStrictEqual([
      passing[0],
      all[1],
      passing[2],
      all[3],
    ]);
  });

  it('saves after 10 and 20 steps of four batches each, where it saved after 3, 5, 8 and 10', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const data = Array.from({ length: 80 }, () => [datum(2, 1)]);
    const steps = from(data).pipe(
      checkpointEvery({ steps: 10 }),
      train(trainer, { loss: 'cross_entropy', accumulate: 4 }),
    );
    await lastValueFrom(steps);
    expect(log.filter((call) => call.startsWith('save'))).toStrictEqual([
      'saveState step-000010',
      'saveState step-000020',
    ]);
  });

  it('saves once after the last of several batches of a step, with atEnd', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const data = Array.from({ length: 7 }, () => [datum(2, 1)]);
    const steps = from(data).pipe(
      checkpointEvery({ steps: 2, atEnd: true }),
      checkpointEvery({ steps: 3, kind: 'sampler', atEnd: true }),
      train(trainer, { loss: 'cross_entropy', accumulate: 2 }),
    );
    await lastValueFrom(steps);
    expect(log.filter((call) => call.startsWith('save'))).toStrictEqual([
      'saveState step-000002',
      'saveWeightsForSampler step-000003',
      'saveState step-000004',
      'saveWeightsForSampler step-000004',
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
    const marked = batches(1).pipe(checkpointEvery({ steps: 1, keepLast: 1, remove }));
    const checkpoint: Checkpoint = { name: 'x', steps: 1, batches: 1, statePath: 'x', kept: false };
    const save = marked.pipe(
      concatMap((batch) => carryOut(batch, saving())[0]!.afterwards!({ checkpoint } as Step)),
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
