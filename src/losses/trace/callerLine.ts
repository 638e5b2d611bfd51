/** Not inside another address: frames of Node's own are `node:internal/process/task_queues:95:5`. */
const PLACE = /(?:^|[\s(@])((?:file:\/\/|https?:\/\/|[a-zA-Z]:[\\/]|\/)[^()]*:\d+:\d+)\)?$/;

/** A function that the caller's code called. */
export type Entry = (...given: never[]) => unknown;

/** A place in code: looked up when it is asked for, since that is slow. */
export type Line = () => string | undefined;

/**
 * Where `entry` was called from, as `file:line:column`; undefined if the engine does not tell. The stack is cut at the function
 * and not by file names, so that it holds in bundles, too.
 */
export function callerLine(entry: Entry): Line {
  const held: { stack?: string } = {};
  Error.captureStackTrace?.(held, entry);
  return () => placeIn(held.stack);
}

/** The first place of a stack, as `file:line:column`, that is in a file and not refused. */
export function placeIn(
  stack: string | undefined,
  refuse: (place: string) => boolean = () => false,
): string | undefined {
  for (const frame of stack?.split('\n').slice(1) ?? []) {
    const place = PLACE.exec(frame.trim())?.[1];
    if (place !== undefined && !refuse(place)) return place.replace(/^file:\/\//, '').replace(/\?[^:]*/, '');
  }
  return undefined;
}
