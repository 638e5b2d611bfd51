import type { OperatorFunction } from 'rxjs';
import { fanOut, type Pipelines, type Routed } from './internal/fanOut.js';

export type { Pipelines, Routed };

/** Options of `broadcast`. */
export interface BroadcastOptions {
  /** How many values the fastest pipeline may be ahead of the slowest before the source pauses: an integer ≥ 1. Default 16. */
  readonly buffer?: number;
}

/**
 * Sends every value to several pipelines, from one subscription of the source, and emits what they make.
 *
 * ```
 * source    -a-b-c-|
 * x         -a-b-c-|               a pipeline that passes values on
 * y         -----s-|               a pipeline that makes batches of three
 * result    -a-b-(cs)-|            each with the name of its pipeline
 * ```
 * ```ts
 * rows.pipe(
 *   broadcast({
 *     train: (each) => each.pipe(batch({ size: 128 }), train(trainer, options)),
 *     log: (each) => each.pipe(toJsonl('rows.jsonl')),
 *   }),
 * ).subscribe(({ pipeline, value }) => console.log(pipeline, value));
 * ```
 * The slowest pipeline gates the source: it pauses when `buffer` values wait for any of them. A pipeline that completes,
 * or unsubscribes from its values, no longer counts; when all have, the source is unsubscribed. An error of a pipeline ends
 * all; end it with RxJS's `catchError` to let the others continue. An error of the source comes when every pipeline has
 * taken the values before it. A pipeline subscribes to its values once at a time; `share` them for more. Completes when all pipelines have. Holds `buffer` values of each pipeline, and what a
 * source sends that does not pause.
 *
 * @see partition for each value to one pipeline
 */
export function broadcast<T, R>(
  pipelines: Pipelines<T, R>,
  { buffer = 16 }: BroadcastOptions = {},
): OperatorFunction<T, Routed<R>> {
  return fanOut({ name: 'broadcast', pipelines, buffer });
}
