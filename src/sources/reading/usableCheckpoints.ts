import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asyncScheduler, defer, from, map, type Observable } from 'rxjs';
import type { Checkpoint } from '../../operators/training/trainingBatch.js';
import type { ResumeFromOptions, ResumePoint } from '../resumeFrom.js';
import { BadRowError } from '../SourceError.js';

type UsableCheckpoint = Checkpoint & { readonly statePath: string };

/** Where a run can continue that has this checkpoint, or none. */
export function pointOf(checkpoint: UsableCheckpoint | undefined): ResumePoint {
  return checkpoint === undefined
    ? { steps: 0, batches: 0 }
    : { steps: checkpoint.steps, batches: checkpoint.batches, checkpoint };
}

/** The checkpoints in a folder with a state that has not expired, the newest last. */
export function usableCheckpoints(
  folder: string,
  { scheduler = asyncScheduler }: ResumeFromOptions,
): Observable<readonly UsableCheckpoint[]> {
  return loggedCheckpoints(folder, { scheduler }).pipe(
    map((all) => all.filter((each): each is UsableCheckpoint => each.statePath !== undefined)),
  );
}

/** The checkpoints in a folder that have not expired, the newest last. */
export function loggedCheckpoints(
  folder: string,
  { scheduler = asyncScheduler }: ResumeFromOptions = {},
): Observable<readonly Checkpoint[]> {
  const path = join(folder, 'checkpoints.jsonl');
  return defer(() => from(readOrEmpty(path))).pipe(
    map((text) => parse(text, path).filter(({ expiresAtMs = Infinity }) => expiresAtMs > scheduler.now())),
  );
}

function parse(text: string, path: string): Checkpoint[] {
  const lines = text.split('\n');
  const last = lines.length - 1;
  return lines.flatMap((line, place) => {
    if (line === '') return [];
    try {
      const checkpoint = JSON.parse(line) as Partial<Checkpoint> | null;
      if (Number.isInteger(checkpoint?.steps) && Number.isInteger(checkpoint?.batches))
        return [checkpoint as Checkpoint];
    } catch {
      if (place === last) return [];
    }
    throw new BadRowError(path, place + 1, 'not a checkpoint');
  });
}

async function readOrEmpty(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
