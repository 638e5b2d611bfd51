import { defer, mergeMap, Observable, type OperatorFunction, type Subscriber } from 'rxjs';
import { checkAtLeast } from '../../../support/checks.js';

/** What {@link encodeWith} asks: a `TokenizerPool`, or anything that encodes one text at a time. */
export interface TextEncoding {
  /** Turns text into tokens: emits once and completes. */
  encode(text: string): Observable<Int32Array>;
}

/** Options of `encodeWith`. */
export interface EncodeWithOptions {
  /** Texts in work or waiting for their turn to come out, at least 1. Default 1024. */
  readonly ahead?: number;
}

/** Tokens that wait for an earlier text, and whom to give them to. */
interface Waiting {
  readonly tokens: Int32Array;
  readonly subscriber: Subscriber<Int32Array>;
}

/**
 * Encodes texts on a pool of threads; tokens come out in the order of the texts.
 *
 * ```
 * source    -a-b-c-----------|
 * result    ------A--(BC)----|     C was ready before B
 * ```
 * At most `ahead` texts are with the pool or hold tokens that wait for an earlier text; what comes faster is queued, as in `mergeMap`. Behind a
 * source that can pause, use `concatMapAhead((text) => pool.encode(text), { ahead })` instead, which also pauses it.
 * Errors of the source and of the pool pass at once. Completes after the last tokens. Unsubscribing takes what waits out of the pool.
 */
export function encodeWith(
  pool: TextEncoding,
  { ahead = 1024 }: EncodeWithOptions = {},
): OperatorFunction<string, Int32Array> {
  checkAtLeast({ ahead }, 1);
  return (source) =>
    defer(() => {
      const waiting = new Map<number, Waiting>();
      let turn = 0;
      let isEmitting = false;
      const emit = (): void => {
        // What becomes ready while this runs is found by the loop.
        if (isEmitting) return;
        isEmitting = true;
        for (let next = waiting.get(turn); next !== undefined; next = waiting.get(turn)) {
          waiting.delete(turn++);
          next.subscriber.next(next.tokens);
          // Only now does the text give up its place among the `ahead`: that is what bounds the waiting ones.
          next.subscriber.complete();
        }
        isEmitting = false;
      };
      const encode = (text: string, index: number): Observable<Int32Array> =>
        new Observable((subscriber) =>
          pool.encode(text).subscribe({
            next: (tokens) => {
              waiting.set(index, { tokens, subscriber });
              emit();
            },
            error: (error: unknown) => subscriber.error(error),
          }),
        );
      return source.pipe(mergeMap(encode, ahead));
    });
}
