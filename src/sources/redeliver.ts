import { appendFileSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { defer, EMPTY, map, type Observable, tap } from 'rxjs';
import { JsonlFile } from '../support/files/jsonlFile.js';
import { fromJsonl } from './fromJsonl.js';

/** An item that failed, as a line of a file. */
export interface StoredLetter<P = unknown> {
  /** The item, as JSON keeps it. */
  readonly item: P;
  /** Its last error: as plain data. */
  readonly error: {
    /** The error's name. */
    readonly name: string;
    /** The error's message. */
    readonly message: string;
    /** The error's code, where it is one of this library. */
    readonly code?: string;
  };
  /** How often it was tried. */
  readonly attempts: number;
  /** Where the item came from, where a file source read it and it is still the object that was read. */
  readonly origin?: {
    /** The file's path. */
    readonly file: string;
    /** The line or the number of the row, from 1. */
    readonly line: number;
  };
  /** When it failed, in milliseconds since 1970. */
  readonly atMs: number;
}

/**
 * Runs a pipeline again over exactly the items that `toDeadLetters` of `tinker-rx/sinks` kept, and takes them out of the file.
 *
 * ```ts
 * const deadLetters = toDeadLetters('dead.jsonl');
 * redeliver('dead.jsonl', (rows: Observable<unknown>) => rows.pipe(toDatums(renderer, { onFailure: { deadLetters } })))
 * ```
 * On subscribe the letters move to `<path>.taken`, so that what fails again is written to an empty file. They are deleted when
 * the pipeline completes after it has read them all. Otherwise, or if the process ends, the next run takes them again, with those that failed
 * since: each item is delivered at least once. Without a file the pipeline gets no items. Pauses while the bounded operator
 * downstream is full, as `fromJsonl` does.
 */
export function redeliver<P, R>(path: string, pipeline: (items: Observable<P>) => Observable<R>): Observable<R> {
  return defer(() => {
    const taken = `${path}.taken`;
    // Opening the file takes off what a crash left half written.
    for (const each of [path, taken]) if (existsSync(each)) new JsonlFile(each).close();
    if (existsSync(taken) && existsSync(path)) {
      appendFileSync(taken, readFileSync(path));
      rmSync(path);
    } else if (existsSync(path)) renameSync(path, taken);
    else if (!existsSync(taken)) return pipeline(EMPTY);
    let isRead = false;
    const letters = fromJsonl<StoredLetter<P>>(taken).pipe(tap({ complete: () => (isRead = true) }));
    return pipeline(letters.pipe(map(({ item }) => item))).pipe(tap({ complete: () => isRead && rmSync(taken) }));
  });
}
