import { identity, Observable, type MonoTypeOperatorFunction, type OperatorFunction, Subject, takeUntil } from 'rxjs';
import { currentScope, FlowMeter, hasScope, watched$, withoutScope, withScope } from './shared/FlowMeter.js';
import { currentGate } from './gate.js';

/**
 * Gives an operator a name under which {@link flow$} reports it. Values, errors and completion pass unchanged.
 *
 * ```ts
 * rows.pipe(
 *   named('rows'),                                            // without an operator: the values at this place
 *   named('tokenize', toDatums(renderer)),
 *   named('judge', mergeMapWeighted(askJudge, { weight: () => 1, budget: 4 })),
 * )
 * ```
 * Inside another named operator it adds nothing. Counts only while `flow$` is watched. Holds nothing.
 *
 * @see docs/backpressure.md
 */
export function named<T>(name: string): MonoTypeOperatorFunction<T>;
export function named<A, B>(name: string, operator: OperatorFunction<A, B>): OperatorFunction<A, B>;
export function named(name: string, operator: OperatorFunction<unknown, unknown> = identity) {
  return (source: Observable<unknown>): Observable<unknown> =>
    new Observable((subscriber) => {
      const { owner, into } = currentScope();
      if (owner !== undefined) return operator(source).subscribe(subscriber);
      const meter = new FlowMeter(name, currentGate());
      subscriber.add(() => meter.end());
      if (into !== undefined) meter.into.add(into);
      const entering = around(
        source,
        (handle) => meter.enter(handle),
        (subscribe) => {
          meter.own = currentGate();
          withScope({ into: meter }, subscribe);
        },
      );
      const leaving = around(
        operator(entering),
        (handle) => meter.leave(handle),
        (subscribe) => {
          withScope({ owner: meter }, subscribe);
        },
      );
      return leaving.subscribe(subscriber);
    });
}

/** The source, with `watch` around the handling of each value while somebody watches, and `scoped` around subscribing. */
function around<T>(
  source: Observable<T>,
  watch: (handle: () => void) => void,
  scoped: (subscribe: () => void) => void,
): Observable<T> {
  return new Observable((subscriber) => {
    // A subscription that is made here would be known to the subscriber too late to stop a synchronous source.
    const left = new Subject<void>();
    subscriber.add(() => left.next());
    scoped(() => {
      source.pipe(takeUntil(left)).subscribe({
        next: (value) => {
          const isWatched = watched$.value;
          if (!isWatched && !hasScope()) return subscriber.next(value);
          const handle = () => subscriber.next(value);
          withoutScope(isWatched ? () => watch(handle) : handle);
        },
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
  });
}
