import fc from 'fast-check';
import { asapScheduler, defer, from, lastValueFrom, map, scheduled, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import { batch, batchByWeight, concatMapAhead, mergeMapWeighted, shuffle } from '../../../src/operators/index.js';
import { retryAfterMs } from '../../../src/transport/retryAfter.js';
import { parseTinkerPath } from '../../../src/wire/tinkerPath.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

const rows = fc
  .array(fc.integer({ min: 1, max: 9 }), { maxLength: 40 })
  .map((all) => all.map((weight, id) => ({ id, weight })));
const size = fc.integer({ min: 1, max: 12 });

it('batch and batchByWeight lose nothing, double nothing, keep the order and their limits', () =>
  fc.assert(
    fc.asyncProperty(rows, size, async (all, limit) => {
      const bySize = await lastValueFrom(from(all).pipe(batch({ size: limit }), toArray()));
      expect(bySize.flat()).toStrictEqual(all);
      expect(bySize.slice(0, -1).every((one) => one.length === limit)).toBe(true);
      const byWeight = await lastValueFrom(
        from(all).pipe(batchByWeight({ weight: ({ weight }) => weight, limit }), toArray()),
      );
      expect(byWeight.flat()).toStrictEqual(all);
      for (const one of byWeight)
        expect(one.length === 1 || one.reduce((sum, { weight }) => sum + weight, 0) <= limit).toBe(true);
    }),
  ));

it('shuffle emits every row once, none earlier than its window allows, the same for the same seed', () =>
  fc.assert(
    fc.asyncProperty(rows, size, fc.integer({ min: 0, max: 99 }), async (all, window, seed) => {
      const run = () =>
        lastValueFrom(
          from(all).pipe(
            shuffle({ window, seed }),
            map(({ id }) => id),
            toArray(),
          ),
        );
      const ids = await run();
      expect([...ids].sort((a, b) => a - b)).toStrictEqual(all.map(({ id }) => id));
      ids.forEach((id, place) => expect(id - place).toBeLessThan(window));
      expect(await run()).toStrictEqual(ids);
    }),
  ));

it('mergeMapWeighted and concatMapAhead run every row once, within their limits; the latter in order', () =>
  fc.assert(
    fc.asyncProperty(rows, fc.integer({ min: 9, max: 30 }), async (all, budget) => {
      let held = 0;
      let most = 0;
      const work = (row: { readonly id: number; readonly weight: number }, weight: number) =>
        defer(() => {
          most = Math.max(most, (held += weight));
          return scheduled([row.id], asapScheduler).pipe(map((id) => ((held -= weight), id)));
        });
      const weighted = mergeMapWeighted((row: (typeof all)[number]) => work(row, row.weight), {
        weight: ({ weight }) => weight,
        budget,
      });
      const merged = await lastValueFrom(from(all).pipe(weighted, toArray()));
      expect([...merged].sort((a, b) => a - b)).toStrictEqual(all.map(({ id }) => id));
      // One that is admitted while there is room may overshoot.
      expect(most).toBeLessThanOrEqual(budget + 9);
      most = 0;
      const ahead = concatMapAhead((row: (typeof all)[number]) => work(row, 1), { ahead: 2 });
      expect(await lastValueFrom(from(all).pipe(ahead, toArray()))).toStrictEqual(all.map(({ id }) => id));
      expect(most).toBeLessThanOrEqual(3);
      expect(held).toBe(0);
    }),
  ));

it('any retry-after is a wait of at most a minute, or none', () =>
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String)),
      fc.string(),
      (after, afterMs) => {
        const waitMs = retryAfterMs({ 'retry-after': after, 'retry-after-ms': afterMs }, 0);
        expect(waitMs === undefined || (waitMs > 0 && waitMs <= 60_000)).toBe(true);
      },
    ),
  ));

it('any text is a checkpoint path with whole parts, or a ValidationError', () =>
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('tinker://', 'run', '/', '..', 'weights', 'a', ''), { maxLength: 7 }),
      (parts) => {
        try {
          const { trainingRunId, checkpointId } = parseTinkerPath(parts.join(''));
          for (const part of [trainingRunId, ...checkpointId.split('/')]) expect(['', '.', '..']).not.toContain(part);
        } catch (error) {
          expect(error).toBeInstanceOf(ValidationError);
        }
      },
    ),
  ));
