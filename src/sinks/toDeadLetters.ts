import { asyncScheduler, type SchedulerLike } from 'rxjs';
import type { DeadLetter } from '../operators/flow/FailurePolicy.js';
import type { StoredLetter } from '../sources/redeliver.js';
import { JsonlFile } from '../support/files/jsonlFile.js';
import { messageOf } from '../support/messageOf.js';
import { originOf } from '../support/rows/rowOrigin.js';

/** Options of `toDeadLetters`. */
export interface ToDeadLettersOptions {
  /** For `atMs`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Keeps items that failed in a JSONL file: the item, its error, and where it came from. For `deadLetters` of a `FailurePolicy`.
 *
 * ```ts
 * const onFailure = { retries: 2, deadLetters: toDeadLetters('dead.jsonl') };
 * tasks.pipe(sampleFrom(sampler, { request: ({ question }) => ({ prompt: ModelInput.fromInts(tokenizer.encode(question)) }), onFailure }))
 * ```
 * Lines are added to the file, each brought to the disk (fsync) before the stream continues; the folder is made. The file is not made before the first
 * failure, and not kept open. An item must be something that JSON can write: a row, not a `ModelInput`. What cannot be written ends the stream with the error.
 *
 * @see redeliver for a second run of exactly those items
 */
export function toDeadLetters(
  path: string,
  { scheduler = asyncScheduler }: ToDeadLettersOptions = {},
): (letter: DeadLetter) => void {
  return ({ item, error, attempts }) => {
    const { name = 'Error', code } = (error ?? {}) as { readonly name?: string; readonly code?: unknown };
    const { file, line } = originOf(item) ?? {};
    const stored: StoredLetter = {
      item,
      error: { name, message: plainMessage(error), ...(typeof code === 'string' ? { code } : {}) },
      attempts,
      ...(file === undefined ? {} : { origin: { file, line: line! } }),
      atMs: scheduler.now(),
    };
    const letters = new JsonlFile(path);
    try {
      letters.append(stored);
    } finally {
      letters.close();
    }
  };
}

/** Also of a failure that is plain data, as those of rollouts are. */
function plainMessage(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === 'string' ? message : messageOf(error);
}
