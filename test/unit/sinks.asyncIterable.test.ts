import { concat, interval, lastValueFrom, NEVER, Observable, of, range, Subject, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { toAsyncIterable } from '../../src/sinks/index.js';
import { fromAsyncIterable } from '../../src/sources/index.js';
import { gated } from '../marbles/gated.js';

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const value of values) seen.push(value);
  return seen;
}

describe('toAsyncIterable', () => {
  it('gives every value in order, and runs the stream again for every loop', async () => {
    const values = toAsyncIterable(range(0, 5));
    expect(await all(values)).toStrictEqual([0, 1, 2, 3, 4]);
    expect(await all(values)).toHaveLength(5);
    expect(await all(toAsyncIterable(of<number>()))).toStrictEqual([]);
  });

  it('keeps the gate: a source is asked for one value at a time, and for none before the loop begins', async () => {
    const { source, sent } = gated(100);
    const iterator = toAsyncIterable(source)[Symbol.asyncIterator]();
    expect(sent()).toBe(0);
    expect(await iterator.next()).toStrictEqual({ done: false, value: 0 });
    expect(sent()).toBe(1);
    await iterator.next();
    await iterator.next();
    expect(sent()).toBe(3);
    expect(await iterator.return!()).toStrictEqual({ done: true, value: undefined });
    expect(await iterator.next()).toStrictEqual({ done: true, value: undefined });
    expect(sent()).toBe(3);
  });

  it('answers several that are asked for at once', async () => {
    const iterator = toAsyncIterable(gated(2).source)[Symbol.asyncIterator]();
    const answers = await Promise.all([iterator.next(), iterator.next(), iterator.next()]);
    expect(answers.map(({ value }) => value)).toStrictEqual([0, 1, undefined]);
  });

  it('unsubscribes when the loop is left', async () => {
    let stopped = 0;
    const source = new Observable<number>((subscriber) => {
      const running = interval(1).subscribe(subscriber);
      return () => {
        stopped++;
        running.unsubscribe();
      };
    });
    for await (const value of toAsyncIterable(source)) if (value === 2) break;
    expect(stopped).toBe(1);
  });

  it('throws the error of the stream in its turn, once', async () => {
    const iterator = toAsyncIterable(
      concat(
        of(1),
        throwError(() => new Error('no')),
      ),
    )[Symbol.asyncIterator]();
    expect(await iterator.next()).toStrictEqual({ done: false, value: 1 });
    await expect(iterator.next()).rejects.toThrow('no');
    expect(await iterator.next()).toStrictEqual({ done: true, value: undefined });
  });

  it('ends with the reason of the signal, and leaves no listener behind', async () => {
    const abort = new AbortController();
    const source = new Subject<number>();
    const iterator = toAsyncIterable(source, { signal: abort.signal })[Symbol.asyncIterator]();
    const waiting = iterator.next();
    expect(source.observed).toBe(true);
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(source.observed).toBe(false);
    await expect(all(toAsyncIterable(NEVER, { signal: abort.signal }))).rejects.toThrow('enough');
  });

  it('is what Observable.from takes of a stream, which it refuses itself', async () => {
    // What the proposal for native Observables says of `from`: async iterables, and no objects that only subscribe.
    const nativeFrom = <T>(value: AsyncIterable<T>) => {
      if (!(Symbol.asyncIterator in value)) throw new TypeError('not convertible');
      return all(value);
    };
    expect(() => nativeFrom(of(1) as never)).toThrow(TypeError);
    expect(await nativeFrom(toAsyncIterable(of(1, 2)))).toStrictEqual([1, 2]);
    expect(await lastValueFrom(fromAsyncIterable(toAsyncIterable(range(0, 3))).pipe(toArray()))).toStrictEqual([
      0, 1, 2,
    ]);
  });
});
