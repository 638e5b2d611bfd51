import { EMPTY, of, Subject, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { TinkerFuture } from '../../../src/client/TinkerFuture.js';
import { marbles } from '../marbles.js';

describe('TinkerFuture', () => {
  it(
    'replays its result to every subscriber, early or late',
    marbles((m) => {
      // prettier-ignore
      const source =   m.cold('--a-|');
      const expected = '       ----(a|)';
      const future = new TinkerFuture(() => source);
      m.expect(future).toBeObservable(expected);
      m.expect(future).toBeObservable(expected);
    }),
  );

  it('hands a result on to a reader that came while it was being told', () => {
    const work = new Subject<number>();
    const future = new TinkerFuture(() => work);
    const log: number[] = [];
    future.subscribe((value) => future.subscribe((again) => log.push(value, again)));
    work.next(7);
    work.complete();
    expect(log).toStrictEqual([7, 7]);
  });

  it('keeps its first end: cancelling a future that has failed changes nothing', () => {
    const log: string[] = [];
    const failed = new TinkerFuture<number>(() => throwError(() => 'first'), {
      onFailure: (error) => {
        log.push(`told ${String(error)}`);
        return error;
      },
    });
    failed.cancel();
    failed.subscribe({ error: (error: unknown) => log.push(`error ${String(error)}`) });
    expect(log).toStrictEqual(['told first', 'error first']);
  });

  it('completes without a value where its work had none', () => {
    const log: string[] = [];
    new TinkerFuture(() => EMPTY).subscribe({ next: () => log.push('value'), complete: () => log.push('complete') });
    expect(log).toStrictEqual(['complete']);
  });

  it('resolves every await, and rejects with the failure', async () => {
    const future = new TinkerFuture(() => of(5));
    await expect(Promise.all([future, future])).resolves.toStrictEqual([5, 5]);
    await expect(new TinkerFuture(() => throwError(() => new Error('no')))).rejects.toThrow('no');
  });
});
