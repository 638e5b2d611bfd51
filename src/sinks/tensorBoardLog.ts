import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { asyncScheduler, defer, type MonoTypeOperatorFunction, type SchedulerLike, tap } from 'rxjs';
import type { Step } from '../operators/training/step.js';
import { evaluationsOf, scalarsOf } from './internal/scalarsOf.js';
import { TensorBoardFile } from './internal/tensorBoardFile.js';

/** Options of `tensorBoardLog`. */
export interface TensorBoardLogOptions {
  /** For the time of each step. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** Files of one process that begin within a second differ in this. */
let files = 0;

/**
 * Writes the numbers of each step to an event file that TensorBoard shows, and passes the step on once it is written.
 *
 * ```ts
 * steps.pipe(tensorBoardLog('runs/first'))       // tensorboard --logdir runs
 * ```
 * Every number of a step is a scalar of its name (`loss`, `learningRate`, `tokens`, of reinforcement learning `reward`), every metric too;
 * evaluations are `evaluation/<name>`, at the step that they evaluated. A run that continues where one stopped (its first step is not step 0) adds a
 * file, and what the earlier ones have from that step on is not shown. The file is closed on completion, error and unsubscribe. What cannot
 * be written ends the stream with the error. Holds nothing.
 *
 * @see metricsLog
 */
export function tensorBoardLog<T extends Step = Step>(
  folder: string,
  { scheduler = asyncScheduler }: TensorBoardLogOptions = {},
): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      let file: TensorBoardFile | undefined;
      let last: number | undefined;
      const open = (firstStep: number) => {
        mkdirSync(folder, { recursive: true });
        const seconds = String(Math.floor(scheduler.now() / 1000)).padStart(10, '0');
        const name = `events.out.tfevents.${seconds}.${hostname()}.${process.pid}.${files++}`;
        return new TensorBoardFile(join(folder, name), scheduler.now(), firstStep);
      };
      const close = () => file?.close();
      return source.pipe(
        tap({
          next: (step) => {
            // A step that comes again only brings the checkpoint it was stopped with.
            if (step.index === last) return;
            last = step.index;
            file ??= open(step.index);
            file.append(scheduler.now(), step.index, scalarsOf(step));
            for (const [index, scalars] of evaluationsOf(step)) file.append(scheduler.now(), index, scalars);
          },
          error: close,
          complete: close,
          unsubscribe: close,
        }),
      );
    });
}
