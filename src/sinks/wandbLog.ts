import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { asyncScheduler, defer, type MonoTypeOperatorFunction, type SchedulerLike, tap } from 'rxjs';
import type { Step } from '../operators/training/step.js';
import { evaluationsOf, scalarsOf } from './internal/scalarsOf.js';
import { WandbFile } from './internal/wandbFile.js';

/** Options of `wandbLog`. */
export interface WandbLogOptions {
  /** Default `tinker-rx`. */
  readonly project?: string;
  /** Shown for the run. Default its id. */
  readonly name?: string;
  /** Id of the run: letters, digits, `-` and `_`. Default eight random characters. */
  readonly id?: string;
  /** Shown beside the run: whatever is worth knowing of it, as JSON. Default nothing. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** For times. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Writes the numbers of each step as an offline run of Weights & Biases, and passes the step on once it is written.
 *
 * ```ts
 * steps.pipe(wandbLog('wandb', { project: 'facts', config: { model, learningRate } }))       // wandb sync wandb/offline-run-*
 * ```
 * The run is `offline-run-<time>-<id>` in the folder, in the format that the `wandb` package writes without a network; `wandb sync` uploads it.
 * Nothing is sent from here. Every number of a step and every metric is a column; an evaluation is `evaluation/<name>`, at the step that it came with.
 * The run ends on completion and unsubscribe, and as failed on an error. Numbers that are not finite are left out. What cannot be written
 * ends the stream with the error. Holds nothing.
 *
 * @see metricsLog
 */
export function wandbLog<T extends Step = Step>(
  folder: string,
  { project = 'tinker-rx', name, id, config = {}, scheduler = asyncScheduler }: WandbLogOptions = {},
): MonoTypeOperatorFunction<T> {
  if (id !== undefined && !/^[\w-]+$/.test(id))
    throw new RangeError(`id must be of letters, digits, - and _, got ${JSON.stringify(id)}`);
  return (source) =>
    defer(() => {
      let file: WandbFile | undefined;
      let last: number | undefined;
      const open = () => {
        const runId = id ?? randomUUID().slice(0, 8);
        const startMs = scheduler.now();
        const time = new Date(startMs).toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15);
        const run = join(folder, `offline-run-${time}-${runId}`);
        mkdirSync(join(run, 'files'), { recursive: true });
        const about = { id: runId, project, name: name ?? runId, host: hostname(), startMs, config };
        return new WandbFile(join(run, `run-${runId}.wandb`), about);
      };
      const close = (exitCode: number) => file?.close(scheduler.now(), exitCode);
      return source.pipe(
        tap({
          next: (step) => {
            // A step that comes again only brings the checkpoint it was stopped with.
            if (step.index === last) return;
            last = step.index;
            file ??= open();
            // A line for each step is all that the format takes: what was evaluated earlier stands at the step it came with.
            const evaluated = evaluationsOf(step).flatMap(([, scalars]) => [...scalars]);
            file.append(scheduler.now(), step.index, new Map([...scalarsOf(step), ...evaluated]));
          },
          error: () => close(1),
          complete: () => close(0),
          unsubscribe: () => close(0),
        }),
      );
    });
}
