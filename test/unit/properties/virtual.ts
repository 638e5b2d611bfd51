/** What the properties of operators share: sources and subscribers in virtual time. */
import fc from 'fast-check';
import { concatMap, defer, delay, finalize, from, type Observable, of, timer, VirtualTimeScheduler } from 'rxjs';
import { expect } from 'vitest';

export const RUNS = { numRuns: 60 };
export const gaps = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 24 });
export const few = fc.integer({ min: 1, max: 5 });

/** 0, 1, 2 … after these gaps. `running` counts its subscriptions. */
export function spaced(
  gapsMs: readonly number[],
  clock: VirtualTimeScheduler,
  running = { now: 0 },
): Observable<number> {
  return defer(() => {
    running.now++;
    return from(gapsMs).pipe(
      concatMap((gapMs, id) => (gapMs === 0 ? of(id) : of(id).pipe(delay(gapMs, clock)))),
      finalize(() => running.now--),
    );
  });
}

export interface Seen<T> {
  readonly values: T[];
  end?: 'complete' | { readonly error: unknown };
}

/** Everything that a stream does until nothing is left to do. */
export function run<T>(stream: Observable<T>, clock: VirtualTimeScheduler): Seen<T> {
  const seen: Seen<T> = { values: [] };
  stream.subscribe({
    next: (value) => void seen.values.push(value),
    error: (error: unknown) => void (seen.end = { error }),
    complete: () => void (seen.end = 'complete'),
  });
  clock.flush();
  return seen;
}

/** Unsubscribes at a moment, and fails where anything is left to do after it. */
export function leaveAt<T>(stream: Observable<T>, atMs: number, clock: VirtualTimeScheduler, left?: () => void): T[] {
  const values: T[] = [];
  const subscription = stream.subscribe({ next: (value) => values.push(value), error: () => {} });
  timer(atMs, clock).subscribe(() => {
    subscription.unsubscribe();
    left?.();
  });
  clock.flush();
  expect(clock.now()).toBe(atMs);
  return values;
}

export const clockOf = (): VirtualTimeScheduler => new VirtualTimeScheduler(undefined, Infinity);
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
