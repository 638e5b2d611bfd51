import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { map, type Observable } from 'rxjs';
import { pointOf, usableCheckpoints } from '../../sources/reading/usableCheckpoints.js';
import type { ResumeFromOptions, ResumePoint } from '../../sources/resumeFrom.js';
import { SourceError } from '../../sources/SourceError.js';
import { isTinkerError, type TinkerError } from '../../wire/tinkerError.js';
import type { RlResume } from '../learning/rlStep.js';
import { decodeState, stateFile } from './storedState.js';

/** Where a run of reinforcement learning stopped, and from where it can continue. */
export interface RlResumePoint extends ResumePoint {
  /** What `reinforce`, `rollouts` and `grpo` take as `resume`; absent for a new run. */
  readonly rl?: RlResume;
}

/** Options of `resumeRl`. */
export interface ResumeRlOptions extends ResumeFromOptions {
  /** Called with each checkpoint that is passed over because its state cannot be read. Default: printed on stderr. */
  readonly onWarning?: (message: string) => void;
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
 * Emits one value and completes. A folder that does not exist is a new run. A checkpoint whose state is missing or damaged is passed
 * over with a warning, and the one before it is taken; where no checkpoint has its state, that is an error that names file and line.
 */
export function resumeRl(folder: string, options: ResumeRlOptions = {}): Observable<RlResumePoint> {
  const { onWarning = (message) => console.error(`tinker-rx warning: ${message}`) } = options;
  return usableCheckpoints(folder, options).pipe(
    map((checkpoints): RlResumePoint => {
      let failure: TinkerError | undefined;
      for (const checkpoint of checkpoints.toReversed()) {
        try {
          const rl = readState(join(folder, stateFile(checkpoint.steps)));
          if (failure !== undefined)
            onWarning(`continuing from step ${checkpoint.steps}, the last one with a whole state`);
          return { ...pointOf(checkpoint), rl };
        } catch (error) {
          if (!isTinkerError(error)) throw error;
          failure ??= error;
          onWarning(error.message);
        }
      }
      if (failure !== undefined) throw failure;
      return pointOf(undefined);
    }),
  );
}

/** @throws SourceError if the file does not exist, BadRowError if it is damaged */
function readState(path: string): RlResume {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new SourceError(path, 'the state of a checkpoint cannot be read', { cause: error });
  }
  return decodeState(text, path).resume;
}
