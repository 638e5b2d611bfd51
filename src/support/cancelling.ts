import { defer, finalize, from, map, tap, type Observable, type ObservableInput } from 'rxjs';

/** The result of a call. Unsubscribing before it has one cancels the call, if it can be cancelled. */
export function cancelling<T>(call: ObservableInput<T>): Observable<T>;
/** The same, with what `project` makes of the result. */
export function cancelling<T, R>(call: ObservableInput<T>, project: (result: T) => R): Observable<R>;
export function cancelling<T>(call: ObservableInput<T>, project?: (result: T) => unknown): Observable<unknown> {
  const result = defer(() => {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
    };
    return from(call).pipe(
      // On the value too: `take(1)` unsubscribes before the call completes.
      tap({ next: settle, error: settle, complete: settle }),
      finalize(() => {
        if (!isSettled) (call as { cancel?: () => void }).cancel?.();
      }),
    );
  });
  return project === undefined ? result : result.pipe(map(project));
}
