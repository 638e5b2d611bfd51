import { from, Observable, type ObservableInput, tap } from 'rxjs';

/** The result of a call, which is cancelled where it can be when it is unsubscribed before it has one. */
export function cancelling<T>(call: ObservableInput<T>): Observable<T> {
  return new Observable((subscriber) => {
    let settled = false;
    const done = () => (settled = true);
    const waiting = from(call)
      .pipe(tap({ error: done, complete: done }))
      .subscribe(subscriber);
    return () => {
      waiting.unsubscribe();
      if (!settled) (call as { cancel?: () => void }).cancel?.();
    };
  });
}
