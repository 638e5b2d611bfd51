import { lastValueFrom, type Observable, type ObservableInput, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { toObservable } from '../../../src/support/toObservable.js';

async function* later() {
  yield 1;
  yield 2;
}
function* stepwise() {
  yield 1;
  yield 2;
}

/** As libraries other than RxJS offer theirs. */
const foreign = { '@@observable': () => of(1, 2) } as unknown as Observable<number>;

describe('toObservable', () => {
  it.each([
    ['a value', 2],
    ['an Observable', of(1, 2)],
    ['a promise', Promise.resolve(2)],
    ['an async iterable', later()],
    ['a generator', stepwise()],
    ['an Observable of another library', foreign],
    ['a stream', new Response('x').body!.pipeThrough(new TransformStream({ transform: (_, to) => to.enqueue(2) }))],
  ])('gives the last value of %s', async (_, returned) => {
    expect(await lastValueFrom(toObservable<number>(returned as number | ObservableInput<number>))).toBe(2);
  });

  it('takes a list for a value', async () => {
    expect(await lastValueFrom(toObservable<readonly number[]>([1, 2]))).toStrictEqual([1, 2]);
  });

  it('passes on undefined and null', async () => {
    expect(await lastValueFrom(toObservable(undefined))).toBeUndefined();
    expect(await lastValueFrom(toObservable<null>(null))).toBeNull();
  });
});
