import { type Observable, throwIfEmpty } from 'rxjs';
import { TinkerFuture } from '../client/TinkerFuture.js';

/**
 * Runs a stream and gives its last value as a future: awaitable, and readable as an Observable as often as one likes.
 *
 * ```ts
 * const last = await toFuture(rows.pipe(batch({ size: 128 }), train(trainer, options)));
 * ```
 * Subscribes at once, and once, however many read the future. The stream's error is the future's; a stream without a
 * value is an `EmptyError`. `cancel()` unsubscribes from the stream. For all values: `toFuture(stream.pipe(toArray()))`.
 */
export function toFuture<T>(source: Observable<T>): TinkerFuture<T> {
  return new TinkerFuture(() => source.pipe(throwIfEmpty()));
}
