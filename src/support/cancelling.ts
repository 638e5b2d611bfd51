import { from, Observable, type ObservableInput, Subscriber } from 'rxjs';

/** The result of a call. Unsubscribing before it has one cancels the call, if it can be cancelled. */
export function cancelling<T>(call: ObservableInput<T>): Observable<T>;
/** The same, with what `project` makes of the result. */
export function cancelling<T, R>(call: ObservableInput<T>, project: (result: T) => R): Observable<R>;
export function cancelling<T>(call: ObservableInput<T>, project?: (result: T) => unknown): Observable<unknown> {
  return new Observable((subscriber) => {
    from(call).subscribe(new Waiting(call, subscriber, project));
  });
}

/** One subscriber instead of operators: there is one for every sample in flight. */
class Waiting<T> extends Subscriber<T> {
  private settled = false;

  constructor(
    private readonly call: ObservableInput<T>,
    private readonly to: Subscriber<unknown>,
    private readonly project: ((result: T) => unknown) | undefined,
  ) {
    super();
    to.add(this);
  }

  protected override _next(result: T): void {
    // `take(1)` unsubscribes now, before the call completes.
    this.settled = true;
    if (this.project === undefined) return this.to.next(result);
    let made: unknown;
    try {
      made = this.project(result);
    } catch (error) {
      return this.to.error(error);
    }
    this.to.next(made);
  }

  protected override _error(error: unknown): void {
    this.settled = true;
    this.unsubscribe();
    this.to.error(error);
  }

  protected override _complete(): void {
    this.settled = true;
    this.unsubscribe();
    this.to.complete();
  }

  override unsubscribe(): void {
    if (this.closed) return;
    super.unsubscribe();
    if (!this.settled) (this.call as { cancel?: () => void }).cancel?.();
  }
}
