import { from, Observable, type ObservableInput, type Observer, type Subscriber, type Unsubscribable } from 'rxjs';

/** The result of a call, which is cancelled where it can be when it is unsubscribed before it has one. */
export function cancelling<T>(call: ObservableInput<T>): Observable<T>;
/** The same, with what `project` makes of the result. */
export function cancelling<T, R>(call: ObservableInput<T>, project: (result: T) => R): Observable<R>;
export function cancelling<T>(call: ObservableInput<T>, project?: (result: T) => unknown): Observable<unknown> {
  return new Observable((subscriber) => {
    const waiting = new Waiting(call, subscriber, project);
    subscriber.add(from(call).subscribe(waiting));
    return waiting;
  });
}

/** One object instead of operators: there is one for every sample in flight. */
class Waiting<T> implements Observer<T>, Unsubscribable {
  #settled = false;

  constructor(
    readonly call: ObservableInput<T>,
    readonly subscriber: Subscriber<unknown>,
    readonly project: ((result: T) => unknown) | undefined,
  ) {}

  next(result: T): void {
    // Who takes one result unsubscribes now, before the call completes.
    this.#settled = true;
    if (this.project === undefined) return this.subscriber.next(result);
    let made: unknown;
    try {
      made = this.project(result);
    } catch (error) {
      return this.error(error);
    }
    this.subscriber.next(made);
  }

  error(error: unknown): void {
    this.#settled = true;
    this.subscriber.error(error);
  }

  complete(): void {
    this.#settled = true;
    this.subscriber.complete();
  }

  unsubscribe(): void {
    if (!this.#settled) (this.call as { cancel?: () => void }).cancel?.();
  }
}
