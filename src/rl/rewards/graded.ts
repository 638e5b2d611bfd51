import { defer, from, isObservable, last, map, type Observable, type ObservableInput, of } from 'rxjs';
import type { Graded } from '../sampling/rollout.js';
import { numberOf, REWARDS } from './numberOf.js';

/** What a grader says, at once or later, as one form. Of several values the last counts. `what` names it in messages. */
export function graded(
  grade: () => Graded | ObservableInput<Graded>,
  what: () => string = () => 'the reward',
): Observable<{ readonly reward: number; readonly metrics?: Readonly<Record<string, number>> }> {
  return defer((): Observable<unknown> => {
    const said: unknown = grade();
    return isLater(said, 'reward') ? from(said).pipe(last(null, undefined)) : of(said);
  }).pipe(
    map((said) => {
      if (typeof said !== 'object' || said === null || !('reward' in said)) {
        return { reward: numberOf(said, what(), REWARDS) };
      }
      return { ...said, reward: numberOf(said.reward, what(), REWARDS) };
    }),
  );
}

/** Whether a value is still to come. Text could be read letter by letter, which nobody means. */
export function isLater(said: unknown, field: string): said is ObservableInput<unknown> {
  if (typeof said !== 'object' || said === null || field in said) return false;
  return (
    isObservable(said) ||
    'then' in said ||
    Symbol.iterator in said ||
    Symbol.asyncIterator in said ||
    'getReader' in said
  );
}
