import type { OperatorFunction } from 'rxjs';
import { fanOut, type Pipelines, type Routed } from './internal/fanOut.js';

/** Options of `partition`. */
export interface PartitionOptions {
  /** How many values may wait for one pipeline before the source pauses: an integer ≥ 1. Default 16. */
  readonly buffer?: number;
}

/**
 * Sends every value to one of several pipelines, by its key, and emits what they make.
 *
 * ```
 * source    -a-b-A-|               by case
 * small     -a-b---|               a pipeline that passes values on
 * large     -----A-|               another one
 * result    -a-b-A-|               each with the name of its pipeline
 * ```
 * ```ts
 * rows.pipe(
 *   partition((row) => (row.modelInput.length < 200 ? 'short' : 'long'), {
 *     short: (each) => each.pipe(batch({ size: 128 }), train(trainer, options)),
 *     long: (each) => each.pipe(batch({ size: 16 }), train(otherTrainer, options)),
 *   }),
 * )
 * ```
 * The source pauses when `buffer` values wait for any pipeline, so one slow pipeline slows all. A pipeline that completes, or
 * unsubscribes from its values, no longer counts: its values are dropped. A key without a pipeline, and a throw of `key`,
 * end the stream with the error. Otherwise errors, completion and what it holds are as in {@link broadcast}.
 */
export function partition<T, R>(
  key: (value: T, index: number) => keyof NoInfer<R>,
  pipelines: Pipelines<T, R>,
  { buffer = 16 }: PartitionOptions = {},
): OperatorFunction<T, Routed<R>> {
  return fanOut({ name: 'partition', pipelines, buffer, key });
}
