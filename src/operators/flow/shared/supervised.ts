import { catchError, defer, EMPTY, type Observable, retry } from 'rxjs';
import { failsForAll, type FailurePlan } from '../FailurePolicy.js';

/** The work for one item, under a policy. What ends for all is not tried again. */
export function supervised<P, R>(item: P, work: () => Observable<R>, plan: FailurePlan<P>): Observable<R> {
  const { retries, then, deadLetters } = plan;
  let attempts = 0;
  const again = (error: unknown, count: number) => {
    if (count > retries || failsForAll(error)) throw error;
    return [0];
  };
  return defer(() => {
    attempts++;
    return work();
  }).pipe(
    retry({ delay: again }),
    catchError((error: unknown) => {
      deadLetters?.({ item, error, attempts });
      if (then === 'fail' || failsForAll(error)) throw error;
      return EMPTY;
    }),
  );
}
