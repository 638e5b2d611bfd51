import { map, type OperatorFunction, skip } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import type { Datum } from '../../wire/datum.js';
import type { MarkedBatch } from './trainingBatch.js';

/**
 * Skips the batches a run was already trained on and numbers the rest, so that steps, schedules and checkpoints continue
 * where they stopped. Stands right after the batches are made, before `checkpointEvery`, `evaluateEvery` and `train`.
 *
 * ```
 * source    -a-b-c-d-|             batches 2
 * result    -----c-d-|             positions 2 and 3
 * ```
 * ```ts
 * const resume = await firstValueFrom(resumeFrom('runs/first'));
 * rows.pipe(batch({ size: 128 }), continueFrom(resume), checkpointEvery({ steps: 20 }), train(trainer, options));
 * ```
 * The batches must come in the same order as before: the same files, seeds and sizes. Those skipped are still read and
 * made. Errors and completion pass. Holds nothing.
 */
export function continueFrom({
  batches,
}: {
  readonly batches: number;
}): OperatorFunction<readonly Datum[], MarkedBatch> {
  checkIntegers({ batches }, 0);
  return (source) =>
    source.pipe(
      skip(batches),
      map((data, index) => ({ data, position: batches + index, marks: [] })),
    );
}
