import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { concatMap, from, map, type Observable, of } from 'rxjs';
import { resumeFrom, type ResumeFromOptions, type ResumePoint } from '../../sources/resumeFrom.js';
import { decodeState, stateFile } from './storedState.js';
import type { RlResume } from '../learning/rlStep.js';

/** Where a run of reinforcement learning stopped, and from where it can continue. */
export interface RlResumePoint extends ResumePoint {
  /** What `reinforce`, `rollouts` and `grpo` take as `resume`; absent for a new run. */
  readonly rl?: RlResume;
}

/**
 * Where the run logged in a folder by {@link rlLog} can continue: its newest checkpoint, and what it needs beside the weights.
 *
 * ```ts
 * const { checkpoint, rl } = await firstValueFrom(resumeRl('runs/first'));
 * const trainer = checkpoint === undefined
 *   ? await service.createLoraTrainingClient({ baseModel, rank: 32 })
 *   : await service.createTrainingClientFromStateWithOptimizer(checkpoint.statePath);
 * tasks.pipe(reinforce(trainer, agent, { ...options, resume: rl }), rlLog('runs/first'))
 * ```
 * The tasks must come in the same order as before. A synchronous run then ends as one that was never stopped, bit for bit,
 * where the service samples the same for the same seed; of an asynchronous one no group is lost and none is trained on twice.
 *
 * Emits one value and completes. A folder that does not exist is a new run; a checkpoint without its state is an error.
 */
export function resumeRl(folder: string, options: ResumeFromOptions = {}): Observable<RlResumePoint> {
  return resumeFrom(folder, options).pipe(
    concatMap((point): Observable<RlResumePoint> => {
      if (point.checkpoint === undefined) return of(point);
      const path = join(folder, stateFile(point.steps));
      return from(readFile(path, 'utf8')).pipe(map((text) => ({ ...point, rl: decodeState(text, path).resume })));
    }),
  );
}
