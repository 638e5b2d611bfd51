import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncScheduler, defer, type MonoTypeOperatorFunction, type SchedulerLike, tap } from 'rxjs';
import type { Checkpoint } from '../operators/training/trainingBatch.js';
import type { Step } from '../operators/training/step.js';
import { BadRowError } from '../sources/SourceError.js';
import { JsonlFile } from '../support/files/jsonlFile.js';
import { jsonLine } from '../support/files/jsonLine.js';
import { putAside } from '../support/files/putAside.js';
import { writeAtomically } from '../support/files/writeAtomically.js';

/** Options of `metricsLog`. */
export interface MetricsLogOptions {
  /** Written to `config.json`, pretty, when the run starts: whatever is worth knowing of it. */
  readonly config?: unknown;
  /** For the time of each line. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Keeps the log of a run in a folder, and passes each step on once it is written.
 *
 * - `config.json`: what it is told of the run
 * - `metrics.jsonl`: a line for each step: the {@link Step}, without its outputs, with the time as `atMs`
 * - `checkpoints.jsonl`: a line for each {@link Checkpoint}, written and brought to the disk after its step's line
 *
 * ```ts
 * steps.pipe(metricsLog('runs/first', { config: { model, learningRate } }))
 * ```
 * A run that continues where one stopped (its first step is not step 0) removes the lines of steps that are repeated,
 * so that each step is in the log once, as if it had never stopped. A run that starts from step 0 in the same folder puts the
 * old files aside, as `metrics.1.jsonl` and so on. Files are closed, and brought to the disk, on completion, error and
 * unsubscribe. What cannot be written ends the stream with the error. Holds nothing.
 *
 * @see resumeFrom
 */
export function metricsLog<T extends Step = Step>(
  folder: string,
  { config, scheduler = asyncScheduler }: MetricsLogOptions = {},
): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      mkdirSync(folder, { recursive: true });
      if (config !== undefined)
        writeAtomically(join(folder, 'config.json'), `${JSON.stringify(config, undefined, 2)}\n`);
      let last: number | undefined;
      let log: { readonly metrics: JsonlFile; readonly checkpoints: JsonlFile } | undefined;
      const open = (index: number) => {
        goOnAt(join(folder, 'metrics.jsonl'), index, (step: Step) => step.index < index);
        goOnAt(join(folder, 'checkpoints.jsonl'), index, (checkpoint: Checkpoint) => checkpoint.steps <= index);
        return {
          metrics: new JsonlFile(join(folder, 'metrics.jsonl')),
          checkpoints: new JsonlFile(join(folder, 'checkpoints.jsonl')),
        };
      };
      const close = () => {
        log?.metrics.close();
        log?.checkpoints.close();
      };
      return source.pipe(
        tap({
          next: (step) => {
            log ??= open(step.index);
            // A step that comes again brings the checkpoint it was stopped with: its line is there.
            if (step.index !== last) log.metrics.append({ ...step, outputs: undefined, atMs: scheduler.now() });
            last = step.index;
            if (step.checkpoint === undefined) return;
            // The order matters: a checkpoint in the log promises that the lines of all its steps are there.
            log.metrics.sync();
            log.checkpoints.append(step.checkpoint);
            log.checkpoints.sync();
          },
          error: close,
          complete: close,
          unsubscribe: close,
        }),
      );
    });
}

function parsed<T>(line: string, path: string, number: number): T {
  try {
    return JSON.parse(line) as T;
  } catch (error) {
    throw new BadRowError(path, number, 'not valid JSON; remove the line to continue', { cause: error });
  }
}

/** Prepares a file for lines from step `index` on: keeps what came before, or puts all aside if nothing did. */
function goOnAt<T>(path: string, index: number, keep: (line: T) => boolean): void {
  if (!existsSync(path)) return;
  if (index === 0) return putAside(path);
  // Opening it takes off a torn line.
  new JsonlFile(path).close();
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  const kept = lines.map((line, place) => parsed<T>(line, path, place + 1)).filter(keep);
  if (kept.length < lines.length) writeAtomically(path, kept.map(jsonLine).join(''));
}
