import { map, of, throwError, timer } from 'rxjs';
import { describe, test } from 'vitest';
import { onAnswer } from '../../../src/client/connection/onAnswer.js';
import { marbles } from '../marbles.js';

const upper = (letter: string): string => letter.toUpperCase();

describe('onAnswer', () => {
  test(
    'gives what is read of the answer, and completes with the source',
    marbles((m) => {
      const source = m.cold('--a--|');
      m.expect(onAnswer(source, upper)).toBeObservable('--A--|');
      m.expect(source).toHaveSubscriptions('^----!');
    }),
  );

  test(
    'goes on with an Observable that the answer led to, whatever the source does then',
    marbles((m) => {
      const source = m.cold('--a|');
      const next = m.cold('     --b--|');
      m.expect(onAnswer(source, () => next)).toBeObservable('----b--|');
      m.expect(next).toHaveSubscriptions('--^----!');
    }),
  );

  test(
    'hands a failure to recover, and goes on with what it gives',
    marbles((m) => {
      const source = m.cold('-#');
      m.expect(onAnswer(source, upper, () => timer(2).pipe(map(() => 'Z')))).toBeObservable('---(Z|)');
      m.expect(onAnswer(m.cold('-#'), upper)).toBeObservable('-#');
    }),
  );

  test(
    'hands what reading throws to recover too, and what recover throws to the subscriber',
    marbles((m) => {
      const problem = new Error('unreadable');
      const unreadable = (): never => {
        throw problem;
      };
      const source = m.cold('-a-|');
      m.expect(onAnswer(source, unreadable, (error) => of(error))).toBeObservable('-(u|)', { u: problem });
      m.expect(onAnswer(m.cold('-a-|'), unreadable)).toBeObservable('-#', undefined, problem);
      m.expect(onAnswer(m.cold('-#'), upper, unreadable)).toBeObservable('-#', undefined, problem);
      m.expect(onAnswer(m.cold('-#'), upper, () => throwError(() => 'later'))).toBeObservable('-#', undefined, 'later');
    }),
  );

  test(
    'ends whatever runs when it is unsubscribed from',
    marbles((m) => {
      const source = m.cold('----a');
      const next = m.cold('----b');
      m.expect(onAnswer(source, upper), '^-!').toBeObservable('---');
      m.expect(source).toHaveSubscriptions('^-!');
      m.expect(
        onAnswer(m.cold('-a|'), () => next),
        '^--!',
      ).toBeObservable('----');
      m.expect(next).toHaveSubscriptions('-^-!');
    }),
  );
});
