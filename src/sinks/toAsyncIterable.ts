import { finalize, type Observable, Subject, takeUntil } from 'rxjs';
import { Queue } from '../support/Queue.js';
import { Gate, withGate } from '../operators/pressure/gate.js';
import { WatchedQueue } from '../operators/pressure/shared/backpressureEvents.js';

/** Options of `toAsyncIterable`. */
export interface ToAsyncIterableOptions {
  /** Ends the iteration: a pending `next()` rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal;
}

/**
 * The values of a stream for `for await`, each when it is asked for.
 *
 * ```ts
 * for await (const step of toAsyncIterable(steps, { signal })) console.log(step.index, step.loss);
 * ```
 * Subscribes with the first value that is asked for, once for each loop. It is a bounded operator: files and other sources
 * of this library pause until the loop asks again. What comes nevertheless, from sources that cannot pause, is queued. The
 * stream's error is thrown by the loop; leaving the loop (`break`, a throw) and the signal unsubscribe. It is also the way
 * to the platform's own Observables: `Observable.from(toAsyncIterable(stream))`.
 *
 * @see docs/backpressure.md
 */
export function toAsyncIterable<T>(
  source: Observable<T>,
  { signal }: ToAsyncIterableOptions = {},
): AsyncIterable<T, undefined> {
  return { [Symbol.asyncIterator]: () => iterate(source, signal) };
}

interface Asked<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

function iterate<T>(source: Observable<T>, signal: AbortSignal | undefined): AsyncIterator<T, undefined> {
  const gate = new Gate();
  const stop = new Subject<void>();
  const ready = new WatchedQueue<T>('toAsyncIterable');
  const asked = new Queue<Asked<T>>();
  let end: { error?: { readonly cause: unknown } } | undefined;
  let started = false;

  const settle = () => {
    while (asked.length > 0 && (ready.length > 0 || end !== undefined)) {
      const { resolve, reject } = asked.shift();
      if (ready.length > 0) resolve({ done: false, value: ready.shift() });
      else if (end?.error !== undefined) {
        reject(end.error.cause);
        // Thrown once; the iteration is over then.
        end = {};
      } else resolve({ done: true, value: undefined });
    }
    if (end === undefined) gate.set(asked.length > 0);
  };
  const finish = (how: { error?: { readonly cause: unknown } }) => {
    end ??= how;
    signal?.removeEventListener('abort', abort);
    stop.next();
    settle();
  };
  const abort = () => {
    ready.clear();
    finish({ error: { cause: signal!.reason } });
  };
  const start = () => {
    started = true;
    if (signal?.aborted === true) return abort();
    signal?.addEventListener('abort', abort, { once: true });
    withGate(gate, () =>
      // Unsubscribe first, then open the gate for other subscribers.
      source
        .pipe(
          takeUntil(stop),
          finalize(() => gate.set(true)),
        )
        .subscribe({
          next: (value) => {
            ready.push(value);
            settle();
          },
          error: (cause: unknown) => finish({ error: { cause } }),
          complete: () => finish({}),
        }),
    );
  };

  return {
    next: () =>
      new Promise((resolve, reject) => {
        asked.push({ resolve, reject });
        if (started) settle();
        else start();
      }),
    return: () => {
      started = true;
      ready.clear();
      finish({});
      return Promise.resolve({ done: true, value: undefined });
    },
  };
}
