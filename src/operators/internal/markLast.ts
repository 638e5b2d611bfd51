import { concat, defer, EMPTY, mergeMap, type MonoTypeOperatorFunction, of } from 'rxjs';

/** Maps each value knowing whether it is the last one: it is held back until the next one, or the end, has come. */
export function markLast<T>(project: (value: T, last: boolean) => T): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      let held: { readonly value: T } | undefined;
      return concat(
        source.pipe(
          mergeMap((value) => {
            const before = held;
            held = { value };
            return before === undefined ? EMPTY : of(project(before.value, false));
          }),
        ),
        defer(() => (held === undefined ? EMPTY : of(project(held.value, true)))),
      );
    });
}
