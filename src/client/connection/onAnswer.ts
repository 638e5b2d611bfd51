import { Observable, Subscriber } from 'rxjs';

/**
 * Reads the one answer of a request: `read` returns the result, or an Observable to continue with. A failure of the
 * source or of `read` goes to `recover`, whose Observable takes over; without `recover` it passes through. Unsubscribing
 * ends whichever is running.
 *
 * It is `map`, `concatMap` and `catchError` in one subscriber: each sample passes here four times. Composed of those
 * three, a sample took 10 to 23 % more CPU in three runs of both in turn.
 */
export function onAnswer<A, B>(
  source: Observable<A>,
  read: (answer: A) => B | Observable<B>,
  recover?: (error: unknown) => Observable<B>,
): Observable<B> {
  return new Observable<B>((subscriber) => {
    source.subscribe(new Reader(subscriber, read, recover));
  });
}

/** A subscriber itself: around a plain observer RxJS would make one, and there are several for each of thousands of samples. */
class Reader<A, B> extends Subscriber<A> {
  private continues = false;

  constructor(
    private readonly to: Subscriber<B>,
    private readonly read: (answer: A) => B | Observable<B>,
    private readonly recover: ((error: unknown) => Observable<B>) | undefined,
  ) {
    super();
    to.add(this);
  }

  protected override _next(answer: A): void {
    let result: B | Observable<B>;
    try {
      result = this.read(answer);
    } catch (error) {
      return this.fail(error);
    }
    if (result instanceof Observable) this.continueWith(result);
    else this.to.next(result);
  }

  protected override _error(error: unknown): void {
    this.unsubscribe();
    this.fail(error);
  }

  protected override _complete(): void {
    this.unsubscribe();
    if (!this.continues) this.to.complete();
  }

  private fail(error: unknown): void {
    if (this.recover === undefined) return this.to.error(error);
    try {
      this.continueWith(this.recover(error));
    } catch (unrecovered) {
      this.to.error(unrecovered);
    }
  }

  private continueWith(next: Observable<B>): void {
    this.continues = true;
    next.subscribe(this.to);
  }
}
