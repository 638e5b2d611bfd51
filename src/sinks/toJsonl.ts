import { defer, type MonoTypeOperatorFunction, tap } from 'rxjs';
import { JsonlFile } from '../support/files/jsonlFile.js';

/** Options of `toJsonl`. */
export interface ToJsonlOptions<T> {
  /** What to write for a value. Default: the value. */
  readonly encode?: (value: T) => unknown;
}

/**
 * Appends each value to a JSONL file and passes it on once it is written.
 *
 * ```ts
 * prompts.pipe(sampleFrom(sampler), toJsonl('samples.jsonl', { encode: ({ response }) => response }))
 * ```
 * The file and its folder are made on subscribe where they do not exist. A line that an earlier crash left half written
 * is taken off first, so that the file never holds a torn line. Typed arrays are written as arrays, bytes as base64.
 * Every line is handed to the system when its value comes, so it survives the process; on completion, error and
 * unsubscribe the file is brought to the disk (fsync) and closed, on completion before that is passed on. What cannot
 * be written ends the stream with the error. Holds nothing.
 */
export function toJsonl<T>(path: string, { encode }: ToJsonlOptions<T> = {}): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      const file = new JsonlFile(path);
      const close = () => file.close();
      return source.pipe(
        tap({
          next: (value) => file.append(encode === undefined ? value : encode(value)),
          error: close,
          complete: close,
          unsubscribe: close,
        }),
      );
    });
}
