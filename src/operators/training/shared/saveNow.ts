import { forkJoin, from, map, type Observable } from 'rxjs';
import type { Saves } from '../Trainable.js';
import type { Checkpoint, MarkPoint } from '../trainingBatch.js';
import { missingMethod } from './missingMethod.js';

export interface SaveNowOptions {
  /** What to save: the state to resume from (default), the weights to sample from, or both. */
  readonly kind?: 'state' | 'sampler' | 'both';
  /** The name, given how many steps are in it. Default: `step-000020`. */
  readonly name?: (steps: number) => string;
  /** When the service may drop it: 3600 s to ten years. Default: never. */
  readonly ttlSeconds?: number;
}

/** Where in the run the weights are saved. */
type SavePoint = Pick<MarkPoint, 'steps' | 'batches' | 'scheduler'> & Partial<Pick<MarkPoint, 'start'>>;

/** Saves the weights as they are, after the last step that was submitted. Every save takes its turn at once. */
export function saveNow(
  trainer: Saves,
  { steps, batches, scheduler, start = from }: SavePoint,
  { kind = 'state', name: nameOf = (count) => `step-${String(count).padStart(6, '0')}`, ttlSeconds }: SaveNowOptions,
): Observable<Checkpoint> {
  const name = nameOf(steps);
  const ttl = ttlSeconds === undefined ? {} : { ttlSeconds };
  const paths: Record<string, Observable<string>> = {};
  if (kind !== 'sampler') {
    if ((trainer.saveState as unknown) === undefined) throw missingMethod('saveState', 'a checkpoint');
    paths['statePath'] = start(trainer.saveState(name, ttl)).pipe(map(({ path }) => path));
  }
  if (kind !== 'state') {
    if (trainer.saveWeightsForSampler === undefined)
      throw missingMethod('saveWeightsForSampler', 'a checkpoint to sample from');
    paths['samplerPath'] = start(trainer.saveWeightsForSampler(name, ttl)).pipe(map(({ path }) => path));
  }
  return forkJoin(paths).pipe(
    map((found) => ({
      name,
      steps,
      batches,
      ...found,
      kept: ttlSeconds === undefined,
      ...(ttlSeconds === undefined ? {} : { expiresAtMs: scheduler.now() + ttlSeconds * 1000 }),
    })),
  );
}
