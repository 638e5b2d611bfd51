import { from, lastValueFrom, map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { checkpointEvery } from '../../src/operators/training/checkpointEvery.js';
import { continueFrom } from '../../src/operators/training/continueFrom.js';
import { constant } from '../../src/operators/training/schedules.js';
import { train } from '../../src/operators/training/train.js';
import type { Datum } from '../../src/wire/datum.js';
import { type firehose, keepsContract } from './contract.js';
import { datum, fakeTrainer } from './fakeTrainer.js';
import { marbles } from './marbles.js';

const rows = (source: ReturnType<typeof firehose>['source']) => source.pipe(map((): readonly Datum[] => []));

describe('continueFrom', () => {
  keepsContract({ operator: () => (source) => rows(source).pipe(continueFrom({ batches: 2 })), readsForThree: 5 });

  it(
    'skips what was trained on and numbers the rest',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--------!';
      const expected = '       -----2-3-|';
      const result = rows(source).pipe(
        continueFrom({ batches: 2 }),
        map(({ position }) => String(position)),
      );
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'skips nothing of a new run, and all of a finished one',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const positions = map(({ position }: { position: number }) => String(position));
      m.expect(rows(source).pipe(continueFrom({ batches: 0 }), positions)).toBeObservable('-0-|');
      m.expect(rows(source).pipe(continueFrom({ batches: 9 }), positions)).toBeObservable('---|');
    }),
  );

  it('makes steps, schedules and checkpoints go on where they stopped', async () => {
    const { trainer, log } = fakeTrainer({ passMs: 0, saveMs: 0 });
    const adam = { learningRate: constant(1, { warmUp: 6 }) };
    const steps = await lastValueFrom(
      from(Array.from({ length: 6 }, () => [datum(2)])).pipe(
        continueFrom({ batches: 3 }),
        checkpointEvery({ steps: 2 }),
        train(trainer, { loss: 'cross_entropy', adam }),
        toArray(),
      ),
    );
    expect(steps.map(({ index, batches, learningRate }) => [index, batches, learningRate])).toStrictEqual([
      [3, 4, 4 / 6],
      [4, 5, 5 / 6],
      [5, 6, 1],
    ]);
    expect(log.filter((call) => call.startsWith('save'))).toStrictEqual([
      'saveState step-000004',
      'saveState step-000006',
    ]);
  });

  it.each([-1, 0.5])('refuses batches %s', (batches) => {
    expect(() => continueFrom({ batches })).toThrow(new RangeError(`batches must be an integer >= 0, got ${batches}`));
  });
});
