import { defer, map, type Observable, type ObservableInput } from 'rxjs';
import { toObservable } from '../../support/toObservable.js';
import type { Graded } from '../sampling/rollout.js';
import { numberOf, REWARDS } from './numberOf.js';

/** What a grader says, at once or later, as one form. Of several values the last counts. `what` names it in messages. */
export function graded(
  grade: () => Graded | ObservableInput<Graded>,
  what: () => string = () => 'the reward',
): Observable<{ readonly reward: number; readonly metrics?: Readonly<Record<string, number>> }> {
  return defer(() => toObservable<unknown>(grade())).pipe(
    map((said) => {
      if (typeof said !== 'object' || said === null || !('reward' in said)) {
        return { reward: numberOf(said, what(), REWARDS) };
      }
      return { ...said, reward: numberOf(said.reward, what(), REWARDS) };
    }),
  );
}
