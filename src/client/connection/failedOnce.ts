import { defer, throwError, type Observable } from 'rxjs';

/**
 * An attempt that has already failed, as a source for `retry`: the first subscriber gets the failure, each later one a
 * new attempt. The operators that handle failures are then built only after a failure.
 */
export function failedOnce<A>(failure: unknown, attempt: () => Observable<A>): Observable<A> {
  let first = true;
  return defer(() => {
    if (!first) return attempt();
    first = false;
    return throwError(() => failure);
  });
}
