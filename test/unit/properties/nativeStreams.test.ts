import fc from 'fast-check';
import { concat, EMPTY, type Observable, take, throwError } from 'rxjs';
import { expect, it } from 'vitest';
import { toAsyncIterable, toReadableStream } from '../../../src/sinks/index.js';
import { fromAsyncIterable, fromReadableStream } from '../../../src/sources/index.js';
import { gated } from '../../marbles/gated.js';
import { RUNS, upTo } from './virtual.js';

const count = fc.integer({ min: 0, max: 30 });
const queue = fc.integer({ min: 0, max: 5 });
const reason = fc.option(fc.string(), { nil: undefined });

/** Everything that comes, how it ends, and how far the source was ahead at most. */
async function watch(stream: Observable<number>, sent: () => number) {
  const seen: number[] = [];
  let ahead = 0;
  const end = await stream
    .forEach((value) => {
      seen.push(value);
      ahead = Math.max(ahead, sent() - seen.length);
    })
    .then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
  return { seen, ahead, end };
}

it('toReadableStream into fromReadableStream, or by async iterables: all values in order, none ahead, the error after them', async () => {
  await fc.assert(
    fc.asyncProperty(count, reason, fc.boolean(), async (length, error, iterable) => {
      const { source, sent } = gated(length);
      const ending = concat(source, error === undefined ? EMPTY : throwError(() => error));
      const back = iterable ? fromAsyncIterable(toAsyncIterable(ending)) : fromReadableStream(toReadableStream(ending));
      const { seen, ahead, end } = await watch(back, sent);
      expect(seen).toStrictEqual(upTo(length));
      expect(end).toStrictEqual(error === undefined ? undefined : { error });
      expect(ahead).toBe(0);
    }),
    RUNS,
  );
});

it('through a TransformStream: all values in order, as many ahead as its two queues hold and the one between them', async () => {
  await fc.assert(
    fc.asyncProperty(count, fc.integer({ min: 1, max: 5 }), queue, async (length, write, read) => {
      const { source, sent } = gated(length);
      const through = new TransformStream<number, number>({}, { highWaterMark: write }, { highWaterMark: read });
      const { seen, ahead } = await watch(fromReadableStream(toReadableStream(source).pipeThrough(through)), sent);
      expect(seen).toStrictEqual(upTo(length));
      expect(ahead).toBeLessThanOrEqual(write + read + 1);
    }),
    RUNS,
  );
});

it('a reader that leaves after any number of chunks stops the source there', async () => {
  await fc.assert(
    fc.asyncProperty(count, fc.integer({ min: 1, max: 30 }), async (length, wanted) => {
      const { source, sent } = gated(length);
      const seen: number[] = [];
      await fromReadableStream(toReadableStream(source))
        .pipe(take(wanted))
        .forEach((value) => void seen.push(value));
      expect(seen).toStrictEqual(upTo(Math.min(length, wanted)));
      expect(sent()).toBe(Math.min(length, wanted));
    }),
    RUNS,
  );
});
