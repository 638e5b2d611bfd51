import { Readable } from 'node:stream';
import { concatMap, from, lastValueFrom, map, NEVER, of, Subject, take, throwError, timer, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  backpressure$,
  batch,
  concatMapAhead,
  repeatEpochs,
  train,
  type Trainable,
} from '../../src/operators/index.js';
import {
  fromArray,
  fromAsyncIterable,
  fromIterable,
  fromNative,
  fromRowBatches,
  fromStdin,
  type NativeObservable,
} from '../../src/sources/index.js';
import { datum } from '../marbles/fakeTrainer.js';

const slowly = concatMapAhead((value: number) => timer(1).pipe(map(() => value)), { ahead: 1 });
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

describe('fromArray and repeatEpochs', () => {
  it('train five steps of an endless run over data in memory', async () => {
    const output = { lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': 1 } };
    let passes = 0;
    const trainer: Trainable = {
      forwardBackward: () => (passes++, timer(1).pipe(map(() => output))),
      optimStep: () => timer(1).pipe(map(() => ({}))),
    };
    const run = (rows = fromArray([datum(2, 1), datum(3, 1), datum(4, 1)])) =>
      lastValueFrom(
        rows.pipe(repeatEpochs(), batch({ size: 2 }), train(trainer, { loss: 'cross_entropy' }), take(5), toArray()),
      );
    expect((await run()).map(({ index }) => index)).toStrictEqual([0, 1, 2, 3, 4]);
    expect(passes).toBeLessThanOrEqual(7);
    expect(await run(from([datum(2, 1), datum(3, 1)]))).toHaveLength(5);
  });
});

describe.each([
  ['fromArray', (count: number) => fromArray(Array.from({ length: count }, (_, place) => place))],
  ['fromIterable', (count: number) => fromIterable(new Set(Array(count).keys()))],
  ['fromIterable of a function', (count: number) => fromIterable(() => Array(count).keys())],
  [
    'fromAsyncIterable',
    (count: number) =>
      fromAsyncIterable(async function* () {
        for (let value = 0; value < count; value++) yield await Promise.resolve(value);
      }),
  ],
])('%s', (_, make) => {
  it('gives every value in order, and again to the next subscriber', async () => {
    const values = make(100).pipe(toArray());
    expect(await lastValueFrom(values)).toStrictEqual([...Array(100).keys()]);
    expect(await lastValueFrom(values)).toHaveLength(100);
    expect(await lastValueFrom(make(40).pipe(slowly, toArray()))).toStrictEqual([...Array(40).keys()]);
    expect(await lastValueFrom(make(0).pipe(toArray()))).toStrictEqual([]);
  });

  it('pauses while the bounded operator downstream is full', async () => {
    const seen: number[] = [];
    const running = make(1000)
      .pipe(concatMapAhead((value) => (seen.push(value), NEVER), { ahead: 2 }))
      .subscribe();
    await expect.poll(() => seen.length).toBeGreaterThan(2);
    await soon();
    expect(seen).toStrictEqual([0, 1, 2]);
    running.unsubscribe();
  });

  it('says whether it found a gate', async () => {
    const told: unknown[] = [];
    const listening = backpressure$.subscribe((event) => event.type === 'source-opened' && told.push(event.gated));
    await lastValueFrom(make(1));
    await lastValueFrom(make(1).pipe(slowly));
    // A subscribe behind a timer has lost it.
    await lastValueFrom(
      timer(1).pipe(
        concatMap(() => make(1)),
        slowly,
      ),
    );
    listening.unsubscribe();
    expect(told).toStrictEqual([false, true, false]);
  });
});

describe('fromIterable', () => {
  it('reads no further than it is asked to, and returns the iterator', () => {
    let [read, returned] = [0, false];
    function* endless() {
      try {
        for (;;) yield read++;
      } finally {
        returned = true;
      }
    }
    fromIterable(endless).pipe(take(3)).subscribe();
    expect([read, returned]).toStrictEqual([3, true]);
  });

  it('fails with a throw of the iterator, and with a generator that was read already', async () => {
    function* broken(): Generator<number> {
      yield 1;
      throw new Error('torn');
    }
    await expect(lastValueFrom(fromIterable(broken))).rejects.toThrow('torn');
    const once = fromIterable([1, 2].values());
    expect(await lastValueFrom(once)).toBe(2);
    await expect(lastValueFrom(once.pipe(repeatEpochs({ epochs: 2 })))).rejects.toThrow('can be read only once');
    expect(() => fromIterable(5 as never)).toThrow('fromIterable needs an iterable, got number');
  });
});

describe('fromAsyncIterable', () => {
  it('aborts, and does not wait for a value that never comes, when unsubscribed', async () => {
    let signal: AbortSignal | undefined;
    const running = fromAsyncIterable((given) => {
      signal = given;
      return (async function* () {
        yield await new Promise<number>(() => {});
      })();
    }).subscribe();
    await soon();
    running.unsubscribe();
    expect(signal!.aborted).toBe(true);
  });

  it('fails with a generator that was read already', async () => {
    const generator = (async function* () {
      yield await Promise.resolve(1);
    })();
    const once = fromAsyncIterable(generator);
    expect(await lastValueFrom(once)).toBe(1);
    await expect(lastValueFrom(once)).rejects.toThrow('can be read only once');
  });
});

describe('fromStdin', () => {
  it('fails in the second epoch, which it cannot read, instead of training one of two', async () => {
    const rows = fromStdin({ input: Readable.from(['{"a":1}\n{"a":2}\n']) });
    const seen: unknown[] = [];
    const epochs = rows.pipe(
      repeatEpochs({ epochs: 2 }),
      map((row) => seen.push(row)),
    );
    await expect(lastValueFrom(epochs)).rejects.toThrow(/stdin: was read already, and can be read only once/);
    expect(seen).toHaveLength(2);
  });
});

describe('fromRowBatches', () => {
  it('says its name where it has one', async () => {
    const told: unknown[] = [];
    const listening = backpressure$.subscribe((event) => told.push(event));
    async function* rows() {
      yield await Promise.resolve([1]);
    }
    await lastValueFrom(fromRowBatches(rows, { name: 'rows of mine' }));
    listening.unsubscribe();
    expect(told).toStrictEqual([{ type: 'source-opened', source: 'rows of mine', gated: false }]);
  });
});

describe('fromNative', () => {
  /** Written after the WICG proposal that browsers follow: `subscribe(observer, { signal })`, no return value. */
  function native<T>(run: (observer: Parameters<NativeObservable<T>['subscribe']>[0]) => void) {
    let aborted = false;
    const observable: NativeObservable<T> = {
      subscribe: (observer, { signal } = {}) => {
        signal?.addEventListener('abort', () => (aborted = true));
        run({ ...observer, next: (value) => signal?.aborted !== true && observer.next(value) });
      },
    };
    return { observable, aborted: () => aborted };
  }

  it('takes values, completion and errors of a native Observable, which from refuses', async () => {
    const { observable } = native<number>((observer) => {
      observer.next(1);
      observer.next(2);
      observer.complete();
    });
    expect(() => from(observable as never)).toThrow(TypeError);
    expect(await lastValueFrom(fromNative(observable).pipe(toArray()))).toStrictEqual([1, 2]);
    const failing = native<number>((observer) => observer.error(new Error('no')));
    await expect(lastValueFrom(fromNative(failing.observable))).rejects.toThrow('no');
  });

  it('aborts its subscription when unsubscribed, also while it emits', () => {
    const { observable, aborted } = native<number>((observer) => {
      for (let value = 0; value < 5; value++) observer.next(value);
    });
    const seen: number[] = [];
    fromNative(observable)
      .pipe(take(2))
      .subscribe((value) => seen.push(value));
    expect([seen, aborted()]).toStrictEqual([[0, 1], true]);
    const silent = native<number>(() => {});
    fromNative(silent.observable).subscribe().unsubscribe();
    expect(silent.aborted()).toBe(true);
  });
});

describe('in-memory sources and errors downstream', () => {
  it('stop when what lies downstream fails', () => {
    let read = 0;
    const values = fromIterable(function* () {
      for (;;) yield read++;
    });
    const failure = new Subject<never>();
    values
      .pipe(concatMapAhead((value) => (value === 3 ? throwError(() => new Error('no')) : of(value)), { ahead: 0 }))
      .subscribe({ error: (error) => failure.error(error) });
    expect(read).toBe(4);
    expect(failure.hasError).toBe(true);
  });
});
