import { type Either, left, right } from 'fp-ts/lib/Either.js';
import { AsyncSubject, Observable, catchError, defer, identity, lastValueFrom, map, of, type Subscription } from 'rxjs';
import { CancelledError } from './errors.js';
import { isTinkerError, type TinkerError } from '../wire/tinkerError.js';

/** What a future's work calls when the service has accepted it under an id. */
export type OnAccepted = (requestId: string) => void;

/** What the maker of a future hears of it. */
interface Hooks {
  /** Told of a failure before anybody else; gives the error that readers get. */
  readonly onFailure?: (error: unknown) => unknown;
  /** Told after everybody else that the work is over, in whatever way. */
  readonly onEnd?: () => void;
}

/**
 * Work that has been started, and its one result.
 *
 * An Observable that replays the result to every subscriber, and awaitable. The work is started by the call that made
 * the future, not by subscribing; unsubscribing does not stop it, {@link TinkerFuture.cancel} does. The result is kept:
 * reading it again sends nothing. An unread failure is not an unhandled rejection: the client logs a warning.
 */
export class TinkerFuture<A> extends Observable<A> implements PromiseLike<A> {
  readonly #result: Observable<A>;
  readonly #fail: (error: unknown) => void;
  readonly #work: Subscription;
  #requestId: string | undefined;
  #observed = false;
  /** The future that this one is a view of. */
  #of: Pick<TinkerFuture<unknown>, 'requestId' | 'abandon'> | undefined;

  constructor(work: (onAccepted: OnAccepted) => Observable<A>, { onFailure = identity, onEnd }: Hooks = {}) {
    super((subscriber) => {
      this.#observed = true;
      return this.#result.subscribe(subscriber);
    });
    const result = new AsyncSubject<A>();
    this.#result = result;
    this.#fail = (error) => result.error(onFailure(error));
    this.#work = defer(() =>
      work((requestId) => {
        this.#requestId = requestId;
      }),
    ).subscribe({
      next: (value) => result.next(value),
      error: this.#fail,
      complete: () => result.complete(),
    });
    this.#work.add(onEnd);
  }

  /** The service's id of the work; undefined until the service has accepted it. */
  get requestId(): string | undefined {
    return this.#requestId ?? this.#of?.requestId;
  }

  /** @internal Whether anybody has subscribed to it or awaited it. */
  get observed(): boolean {
    return this.#observed;
  }

  /** The result or the failure as a value, for those who prefer values. */
  either(): TinkerFuture<Either<TinkerError, A>> {
    const either = new TinkerFuture(() =>
      this.pipe(
        map((value): Either<TinkerError, A> => right(value)),
        catchError((error: unknown) => {
          if (isTinkerError(error)) return of<Either<TinkerError, A>>(left(error));
          throw error;
        }),
      ),
    );
    either.#of = this;
    return either;
  }

  /**
   * Stops waiting, and sending where nothing was sent yet; readers get a CancelledError. A sample is cancelled on the
   * server if supported; training work that was sent still runs and is billed. After the result this does nothing.
   */
  cancel(): void {
    if (this.#of === undefined && this.#work.closed) return;
    this.abandon(new CancelledError('the caller cancelled this request', { requestId: this.#requestId }));
  }

  /** @internal Ends the work as `cancel` does, for another reason. */
  abandon(reason: TinkerError): void {
    // A view has no work.
    if (this.#of !== undefined) return this.#of.abandon(reason);
    if (this.#work.closed) return;
    this.#work.unsubscribe();
    this.#fail(reason);
  }

  then<B = A, C = never>(
    onFulfilled?: ((value: A) => B | PromiseLike<B>) | null,
    onRejected?: ((reason: unknown) => C | PromiseLike<C>) | null,
  ): Promise<B | C> {
    return lastValueFrom(this, { defaultValue: undefined as A }).then(onFulfilled, onRejected);
  }

  /** The same as a promise that handles the failure; `then(undefined, onRejected)`. */
  catch<C = never>(onRejected?: ((reason: unknown) => C | PromiseLike<C>) | null): Promise<A | C> {
    return this.then(undefined, onRejected);
  }

  /** The same as a promise that calls back once it is settled, either way. A cancelled future is settled too. */
  finally(onFinally?: (() => void) | null): Promise<A> {
    return this.then().finally(onFinally);
  }
}
