import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { defer, map, type MonoTypeOperatorFunction, Observable, tap } from 'rxjs';
import type { Step } from '../../operators/training/step.js';
import { putAside } from '../../support/files/putAside.js';
import { writeAtomically } from '../../support/files/writeAtomically.js';
import { metricsLog, type MetricsLogOptions } from '../../sinks/metricsLog.js';
import type { ScoredGroup } from '../learning/advantages.js';
import type { RlStep } from '../learning/rlStep.js';
import { withGroupListener } from './groupListener.js';
import { RolloutsFile } from './RolloutsFile.js';
import { decodeState, encodeState, stateFile } from './storedState.js';

/** Options of `rlLog`. */
export interface RlLogOptions extends MetricsLogOptions {
  /** Writes what was said as text, in `rollouts.jsonl`: `(tokens) => tokenizer.decode(tokens)`. Default: token ids. */
  readonly decode?: (tokens: Int32Array) => string;
  /** Whether rollouts are written. Default true. */
  readonly rollouts?: boolean;
}

/** A checkpoint older than the newest few is resumed from only when those have expired. */
const STATES_KEPT = 3;
const ROLLOUTS = 'rollouts.jsonl';

/**
 * Keeps the log of a run of reinforcement learning in a folder, and passes each step on once it is written.
 *
 * - `rollouts.jsonl`: a line for each trajectory, under the cookbook's names, also of groups that taught nothing. It is written as soon
 *   as its group is graded, so it is there also where no step follows
 * - `rl-state-000020.json`: what a checkpoint of 20 steps needs beside its weights; the newest three are kept
 * - what `metricsLog` writes: `config.json`, `metrics.jsonl`, `checkpoints.jsonl`
 *
 * ```ts
 * tasks.pipe(reinforce(trainer, agent, { ...options, checkpoint: { steps: 20 } }), rlLog('runs/first'))
 * ```
 * A checkpoint is in the log only once its state is on the disk, so a run killed at any moment continues from a whole one. A
 * run that continues takes off what was written after its checkpoint; one that starts from step 0 moves the files of the run before
 * aside: `rollouts.1.jsonl`, and so on. What cannot be written ends the stream with the error. Errors and completion pass. Holds nothing.
 *
 * @see resumeRl
 */
export function rlLog<T = unknown>(folder: string, options: RlLogOptions = {}): MonoTypeOperatorFunction<RlStep<T>> {
  const { decode, rollouts = true, ...metrics } = options;
  return (source) =>
    defer(() => {
      mkdirSync(folder, { recursive: true });
      let file: RolloutsFile | undefined;
      let started = false;
      const start = (index: number): void => {
        if (started) return;
        started = true;
        if (index === 0) startOver(folder);
        else continueAt(folder, index);
        if (rollouts) file = new RolloutsFile(join(folder, ROLLOUTS), decode);
      };
      const hear = (group: ScoredGroup, iteration: number, beginsBatch: boolean): void => {
        start(iteration);
        file?.add(group, iteration, beginsBatch);
      };
      const full = new WeakMap<Step, RlStep<T>>();
      const write = (step: RlStep<T>): Step => {
        start(step.index);
        const rolloutsBytes = file?.endOf(step) ?? 0;
        if (step.resume !== undefined) {
          file?.sync();
          const { resume } = step;
          writeAtomically(join(folder, stateFile(resume.steps)), encodeState({ resume, rolloutsBytes }));
        }
        const { groups: _, resume: __, ...line } = step;
        full.set(line, step);
        return line;
      };
      const close = () => file?.close();
      const heard = new Observable<RlStep<T>>((subscriber) =>
        withGroupListener(hear, () => source.subscribe(subscriber)),
      );
      return heard.pipe(
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

const statesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => /^rl-state-\d+\.json$/.test(name))
    .sort();

/** Puts the run before aside, its checkpoints first: then whatever happens, the folder holds no run to continue. */
function startOver(folder: string): void {
  for (const name of ['checkpoints.jsonl', 'metrics.jsonl', ROLLOUTS, ...statesIn(folder)])
    putAside(join(folder, name));
}

/** Makes the rollouts and states what they were at the checkpoint of `index` steps. */
function continueAt(folder: string, index: number): void {
  const [path, current] = [join(folder, ROLLOUTS), stateFile(index)];
  for (const name of statesIn(folder)) if (name > current) rmSync(join(folder, name), { force: true });
  const state = join(folder, current);
  if (!existsSync(path) || !existsSync(state)) return;
  const { rolloutsBytes } = decodeState(readFileSync(state, 'utf8'), state);
  if (statSync(path).size > rolloutsBytes) truncateSync(path, rolloutsBytes);
}

function removeOld(folder: string): void {
  for (const name of statesIn(folder).slice(0, -STATES_KEPT)) rmSync(join(folder, name), { force: true });
}
