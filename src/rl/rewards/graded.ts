import { defer, map, type Observable, type ObservableInput } from 'rxjs';
import { toObservable } from '../../support/toObservable.js';
import type { Graded } from '../sampling/rollout.js';

/** What a grader says, at once or later, as one form. Of several values the last counts. */
export function graded(
  grade: () => Graded | ObservableInput<Graded>,
): Observable<{ readonly reward: number; readonly metrics?: Readonly<Record<string, number>> }> {
  return defer(() => toObservable<Graded>(grade())).pipe(
    map((said) => (typeof said === 'number' ? { reward: said } : said)),
  );
}
