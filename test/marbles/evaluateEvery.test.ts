import { from, lastValueFrom, map, NEVER, of, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { evaluateEvery } from '../../src/operators/training/evaluateEvery.js';
import { train } from '../../src/operators/training/train.js';
import type { Datum } from '../../src/wire/datum.js';
import { carryOut } from './carryOut.js';
import { type firehose, keepsContract } from './contract.js';
import { datum, fakeTrainer } from './fakeTrainer.js';
import { marbles } from './marbles.js';

const rows = (source: ReturnType<typeof firehose>['source']) => source.pipe(map((): readonly Datum[] => []));
const evaluate = () => of({ accuracy: 1 });
const snapshots = { saveWeightsAndGetSamplingClient: () => NEVER };

// What train does with the marks is in train.test.ts.
describe('evaluateEvery', () => {
  keepsContract({
    operator: () => (source) => rows(source).pipe(evaluateEvery({ steps: 2, evaluate })),
    readsForThree: 3,
  });

  it(
    'evaluates after every so many steps, without holding any back',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--------!';
      const expected = '       -0-1-0-1-|';
      const result = rows(source).pipe(
        evaluateEvery({ steps: 2, evaluate }),
        map((batch) => String(carryOut(batch, snapshots).length)),
      );
      m.expect(result).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'evaluates after the last step too when told to',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|');
      const expected = '       ---0-1-(1|)';
      const result = rows(source).pipe(
        evaluateEvery({ steps: 2, evaluate, atEnd: true }),
        map((batch) => String(carryOut(batch, snapshots).length)),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it('gives evaluate the snapshot and its place', async () => {
    const seen: unknown[] = [];
    const batch = await lastValueFrom(
      of<readonly Datum[]>([]).pipe(
        evaluateEvery({
          steps: 1,
          evaluate: (sampler: string, { index, steps }) => {
            seen.push([sampler, index, steps]);
            return of({ accuracy: 1 });
          },
        }),
      ),
    );
    const [result] = carryOut(batch, { saveWeightsAndGetSamplingClient: () => of('sampler') });
    expect(await lastValueFrom(from(result!.evaluation!()))).toStrictEqual({ accuracy: 1 });
    expect(seen).toStrictEqual([['sampler', 0, 1]]);
  });

  it(
    'takes the loss on held-out data by a forward pass in turn, and saves nothing',
    marbles((m) => {
      const { trainer, log } = fakeTrainer({ passMs: 4 });
      const source = m.cold('  (abcd|)', { a: [datum(2, 1)], b: [datum(2, 1)], c: [datum(2, 1)], d: [datum(2, 1)] });
      const expected = '       ----0---1---2---(3|)';
      const seen: unknown[] = [];
      const result = source.pipe(
        evaluateEvery({ steps: 2, validation: [datum(2, 1), datum(3, 1)] }),
        train(trainer, { loss: 'cross_entropy' }),
        tap(({ index, evaluations = [] }) =>
          seen.push([index, evaluations.map(({ index, metrics }) => [index, metrics])]),
        ),
        map(({ index }) => String(index)),
      );
      m.expect(result).toBeObservable(expected);
      m.flush();
      // Right behind the optimizer step whose weights it measures, before the next pass.
      expect(log.map((call) => call.split(' ')[0])).toStrictEqual([
        ...['forwardBackward', 'optimStep'],
        ...['forwardBackward', 'optimStep', 'forward'],
        ...['forwardBackward', 'optimStep'],
        ...['forwardBackward', 'optimStep', 'forward'],
      ]);
      expect(seen).toStrictEqual([
        [0, []],
        [1, [[1, { validation_loss: 98 / 5 }]]],
        [2, []],
        [3, [[3, { validation_loss: 96 / 5 }]]],
      ]);
    }),
  );

  it('refuses held-out data that measures nothing', () => {
    expect(() => evaluateEvery({ steps: 1, validation: [] })).toThrow('validation must have at least one datum');
    expect(() => evaluateEvery({ steps: 1, validation: [datum(3, 0)] })).toThrow(
      'validation must have a token with a weight other than 0',
    );
  });

  it.each([0, 1.5])('refuses steps %s', (steps) => {
    expect(() => evaluateEvery({ steps, evaluate })).toThrow(
      new RangeError(`steps must be an integer >= 1, got ${steps}`),
    );
  });
});
