import { map, type Observable, type SchedulerLike } from 'rxjs';
import type { Checkpoint } from '../operators/training/trainingBatch.js';
import { pointOf, usableCheckpoints } from './reading/usableCheckpoints.js';

/** Where a run stopped, and from where it can continue. */
export interface ResumePoint {
  /** How many steps are done: the index of the next one. 0 for a new run. */
  readonly steps: number;
  /** How many batches of the data are trained on; what `continueFrom` takes. 0 for a new run. */
  readonly batches: number;
  /** The newest checkpoint that can be resumed from; absent for a new run. */
  readonly checkpoint?: Checkpoint & { readonly statePath: string };
}

/** Options of `resumeFrom`. */
export interface ResumeFromOptions {
  /** For telling which checkpoints have expired. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Where the run logged in a folder can continue: its newest checkpoint with a state that has not expired.
 *
 * ```ts
 * const resume = await firstValueFrom(resumeFrom('runs/first'));
 * const trainer = resume.checkpoint === undefined
 *   ? await service.createLoraTrainingClient({ baseModel, rank: 32 })
 *   : await service.createTrainingClientFromStateWithOptimizer(resume.checkpoint.statePath);
 * rows.pipe(
 *   batch({ size: 128 }),
 *   continueFrom(resume),
 *   checkpointEvery({ steps: 20 }),
 *   train(trainer, options),
 *   metricsLog('runs/first'),
 * )
 * ```
 * Steps after that checkpoint are done again from its state, on the same batches; the log forgets the first time. So a
 * run that was killed at any moment ends with the steps, and the data in them, of one that never was. What is lost is an
 * evaluation that was running when the run was killed.
 *
 * Emits one value and completes. A folder, or a file in it, that does not exist is a new run. A last line that was cut
 * off by a crash is passed over; any other that is no checkpoint is a `BadRowError`.
 */
export function resumeFrom(folder: string, options: ResumeFromOptions = {}): Observable<ResumePoint> {
  return usableCheckpoints(folder, options).pipe(map((usable) => pointOf(usable.at(-1))));
}
