import { from, type Observable } from 'rxjs';

/**
 * A synchronous source that would never end, and how much of it was `read`: for finding out whether an operator stops when
 * its subscriber has enough. Ends at 100 000 values, so that a test fails instead of hanging.
 */
export function firehose(): { readonly source: Observable<string>; readonly read: () => number } {
  let read = 0;
  function* values() {
    while (read < 100_000) yield String(read++);
  }
  return { source: from(values()), read: () => read };
}
