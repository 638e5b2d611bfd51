import { Observable } from 'rxjs';

/** The platform's own Observable, as browsers have it: `element.when('click')`, `new Observable(…)`. */
export interface NativeObservable<T> {
  /** Starts it, as the platform's own `Observable` does. */
  subscribe(
    observer: {
      readonly next: (value: T) => void;
      readonly error: (error: unknown) => void;
      readonly complete: () => void;
    },
    options?: { readonly signal?: AbortSignal },
  ): void;
}

/**
 * The values of a native Observable. RxJS's `from` refuses those: they are neither RxJS's nor iterable.
 *
 * ```ts
 * fromNative(button.when('click')).pipe(map(() => prompt), sampleFrom(sampler))
 * ```
 * The other way, `Observable.from(toAsyncIterable(stream))` makes a native one of a stream. Errors and completion pass.
 * Unsubscribing aborts the subscription. It pushes and cannot be paused: what does not fit downstream is queued there.
 * Holds nothing.
 *
 * @see toAsyncIterable
 */
export function fromNative<T>(native: NativeObservable<T>): Observable<T> {
  return new Observable((subscriber) => {
    const abort = new AbortController();
    subscriber.add(() => abort.abort());
    native.subscribe(
      {
        next: (value) => subscriber.next(value),
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      },
      { signal: abort.signal },
    );
  });
}
