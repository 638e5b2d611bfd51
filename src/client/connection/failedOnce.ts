import { defer, throwError, type Observable } from 'rxjs';

/**
 * An attempt that has failed already, for `retry` to go on from: the first subscriber gets the failure, each later one a
 * new attempt. So what follows a failure is built only where there is one.
 */
export function failedOnce<A>(failure: unknown, attempt: () => Observable<A>): Observable<A> {
  let first = true;
  return defer(() => {
    if (!first) return attempt();
    first = false;
    return throwError(() => failure);
  });
}
