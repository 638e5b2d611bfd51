import { from, isObservable, last, type Observable, type ObservableInput, of } from 'rxjs';

/**
 * What a callback returned, as an Observable of one value: the value itself, or the last one of an Observable, a promise, an async
 * iterable, a generator or a stream. A list counts as a value.
 */
export function toObservable<A>(returned: A | ObservableInput<A>): Observable<A> {
  return comesLater(returned) ? from(returned).pipe(last()) : of(returned as A);
}

/** Methods of what `from` takes. A list has none of them. */
const METHODS = ['then', 'next', 'getReader', '@@observable', Symbol.asyncIterator];

function comesLater<A>(returned: A | ObservableInput<A>): returned is ObservableInput<A> & A {
  if (isObservable(returned)) return true;
  if (typeof returned !== 'object' || returned === null) return false;
  const { observable = '@@observable' } = Symbol as { readonly observable?: symbol };
  return [...METHODS, observable].some(
    (name) => typeof (returned as Record<PropertyKey, unknown>)[name] === 'function',
  );
}
