import { defer, from, isObservable, last, map, type Observable, type ObservableInput, of } from 'rxjs';
import type { Graded } from '../sampling/rollout.js';

/** What a grader says, at once or later, as one form. Of several values the last counts. */
export function graded(
  grade: () => Graded | ObservableInput<Graded>,
): Observable<{ readonly reward: number; readonly metrics?: Readonly<Record<string, number>> }> {
  return defer((): Observable<Graded> => {
    const said = grade();
    return isNow(said) ? of(said) : from(said).pipe(last());
  }).pipe(map((said) => (typeof said === 'number' ? { reward: said } : said)));
}

function isNow(said: Graded | ObservableInput<Graded>): said is Graded {
  return (
    typeof said === 'number' || (!isObservable(said) && typeof said === 'object' && said !== null && 'reward' in said)
  );
}
