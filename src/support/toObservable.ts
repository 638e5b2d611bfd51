import { from, isObservable, last, type Observable, type ObservableInput, of } from 'rxjs';

/**
 * What a callback returned, as an Observable of one value: the value itself, or the last one of an Observable, a promise, an async
 * iterable or a generator. A list counts as a value.
 */
export function toObservable<A>(returned: A | ObservableInput<A>): Observable<A> {
  return comesLater(returned) ? from(returned).pipe(last()) : of(returned as A);
}

function comesLater<A>(returned: A | ObservableInput<A>): returned is ObservableInput<A> & A {
  if (isObservable(returned)) return true;
  if (typeof returned !== 'object' || returned === null) return false;
  const { then, next } = returned as { readonly then?: unknown; readonly next?: unknown };
  return typeof then === 'function' || typeof next === 'function' || Symbol.asyncIterator in returned;
}
