import { of, Subject, throwError, type Observer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { TinkerFuture } from '../../../src/client/TinkerFuture.js';
import { Outcome } from '../../../src/client/results/Outcome.js';
import { marbles } from '../marbles.js';

const recorder = (log: string[], name = ''): Observer<never> => ({
  next: (value: unknown) => log.push(`${name}next ${String(value)}`),
  error: (error: unknown) => log.push(`${name}error ${String(error)}`),
  complete: () => log.push(`${name}complete`),
});

describe('Outcome', () => {
  it('tells those who read before and those who read after the same', () => {
    const outcome = new Outcome();
    const [early, late]: string[][] = [[], []];
    outcome.read(recorder(early!));
    outcome.next(1);
    outcome.next(2);
    expect(early).toStrictEqual([]);
    outcome.complete();
    outcome.read(recorder(late!));
    expect(early).toStrictEqual(['next 2', 'complete']);
    expect(late).toStrictEqual(early);
  });

  it('completes without a value where there was none', () => {
    const log: string[] = [];
    const outcome = new Outcome();
    outcome.complete();
    outcome.read(recorder(log));
    expect(log).toStrictEqual(['complete']);
  });

  it('ends once: what comes after the end changes nothing', () => {
    const log: string[] = [];
    const outcome = new Outcome((error) => log.push(`settled ${String(error)}`));
    outcome.fail('first');
    outcome.fail('second');
    outcome.next(3);
    outcome.complete();
    outcome.read(recorder(log));
    expect(log).toStrictEqual(['settled first', 'error first']);
  });

  it('names an error of the work, and tells of the end after all readers', () => {
    const log: string[] = [];
    const outcome = new Outcome(
      (error) => log.push(`settled ${String(error)}`),
      (error) => `named ${String(error)}`,
    );
    outcome.read(recorder(log, 'a '));
    outcome.read(recorder(log, 'b '));
    outcome.error('x');
    expect(log).toStrictEqual(['a error named x', 'b error named x', 'settled named x']);
  });

  it('forgets a reader', () => {
    const log: string[] = [];
    const outcome = new Outcome();
    const reader = recorder(log);
    outcome.read(reader);
    outcome.forget(reader);
    outcome.next(1);
    outcome.complete();
    expect(log).toStrictEqual([]);
  });
});

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

  it('resolves every await, and rejects with the failure', async () => {
    const future = new TinkerFuture(() => of(5));
    await expect(Promise.all([future, future])).resolves.toStrictEqual([5, 5]);
    await expect(new TinkerFuture(() => throwError(() => new Error('no')))).rejects.toThrow('no');
  });
});
