import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { defer, map, type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { Step } from '../../operators/step.js';
import { JsonlFile } from '../../support/files/jsonlFile.js';
import { writeAtomically } from '../../support/files/writeAtomically.js';
import { metricsLog, type MetricsLogOptions } from '../../sinks/metricsLog.js';
import { rolloutRecords } from './rolloutRecords.js';
import { decodeState, encodeState, stateFile } from './storedState.js';
import type { RlStep } from '../learning/rlStep.js';

/** Options of `rlLog`. */
export interface RlLogOptions extends MetricsLogOptions {
  /** Writes what was said as text, in `rollouts.jsonl`: `(tokens) => tokenizer.decode(tokens)`. Default: token ids. */
  readonly decode?: (tokens: Int32Array) => string;
  /** Whether rollouts are written. Default true. */
  readonly rollouts?: boolean;
}

/** A checkpoint older than the newest few is resumed from only when those have expired. */
const STATES_KEPT = 3;

/**
 * Keeps the log of a run of reinforcement learning in a folder, and passes each step on once it is written.
 *
 * - `rollouts.jsonl`: a line for each trajectory, also of groups that taught nothing, with the cookbook's names
 * - `rl-state-000020.json`: what a checkpoint of 20 steps needs beside its weights; the newest three are kept
 * - what `metricsLog` writes: `config.json`, `metrics.jsonl`, `checkpoints.jsonl`
 *
 * ```ts
 * tasks.pipe(reinforce(trainer, agent, { ...options, checkpoint: { steps: 20 } }), rlLog('runs/first'))
 * ```
 * A checkpoint is in the log only once its state is on the disk, so a run killed at any moment continues from a whole one. A
 * run that continues takes off what was written after its checkpoint; one that starts from step 0 moves `rollouts.jsonl` aside. What
 * cannot be written ends the stream with the error. Errors and completion pass. Holds nothing.
 *
 * @see resumeRl
 */
export function rlLog<T = unknown>(folder: string, options: RlLogOptions = {}): MonoTypeOperatorFunction<RlStep<T>> {
  const { decode, rollouts = true, ...metrics } = options;
  const path = join(folder, 'rollouts.jsonl');
  return (source) =>
    defer(() => {
      mkdirSync(folder, { recursive: true });
      let file: JsonlFile | undefined;
      let last: number | undefined;
      const full = new WeakMap<Step, RlStep<T>>();
      const write = (step: RlStep<T>): Step => {
        if (rollouts) {
          if (file === undefined) {
            goOnAt(folder, path, step.index);
            file = new JsonlFile(path);
          }
          // A step that comes again brings a checkpoint: its rollouts are there.
          if (step.index !== last) for (const record of rolloutRecords(step, decode)) file.append(record);
        }
        last = step.index;
        if (step.resume !== undefined) {
          file?.sync();
          const rolloutsBytes = rollouts ? statSync(path).size : 0;
          const { resume } = step;
          writeAtomically(join(folder, stateFile(resume.steps)), encodeState({ resume, rolloutsBytes }));
        }
        const { groups: _, resume: __, ...line } = step;
        full.set(line, step);
        return line;
      };
      const close = () => file?.close();
      return source.pipe(
        tap({ error: close, complete: close, unsubscribe: close }),
        map(write),
        metricsLog(folder, metrics),
        map((line) => full.get(line)!),
        tap(({ checkpoint }) => {
          if (checkpoint !== undefined) removeOld(folder);
        }),
      );
    });
}

/** Prepares the file for the rollouts of step `index`: as it was at the checkpoint before, or put aside for a new run. */
function goOnAt(folder: string, path: string, index: number): void {
  if (!existsSync(path)) return;
  if (index === 0) {
    for (let number = 1; ; number++) {
      const aside = path.replace(/\.jsonl$/, `.${number}.jsonl`);
      if (!existsSync(aside)) return renameSync(path, aside);
    }
  }
  const state = join(folder, stateFile(index));
  if (existsSync(state)) truncateSync(path, decodeState(readFileSync(state, 'utf8'), state).rolloutsBytes);
}

function removeOld(folder: string): void {
  const states = readdirSync(folder)
    .filter((name) => /^rl-state-\d+\.json$/.test(name))
    .sort();
  for (const name of states.slice(0, -STATES_KEPT)) rmSync(join(folder, name), { force: true });
}
