import { forkJoin, from, map, type Observable, type SchedulerLike } from 'rxjs';
import type { Saves } from '../Trainable.js';
import type { Checkpoint } from '../trainingBatch.js';
import { missingMethod } from './missingMethod.js';

export interface SaveNowOptions {
  /** What to save: the state to resume from (default), the weights to sample from, or both. */
  readonly kind?: 'state' | 'sampler' | 'both';
  /** The name, given how many steps are in it. Default: `step-000020`. */
  readonly name?: (steps: number) => string;
  /** When the service may drop it: 3600 s to ten years. Default: never. */
  readonly ttlSeconds?: number;
}

/** Saves the weights as they are, after the last step that was submitted: for the end of a run that was not known before. */
export function saveNow(
  trainer: Saves,
  {
    steps,
    batches,
    scheduler,
  }: { readonly steps: number; readonly batches: number; readonly scheduler: SchedulerLike },
  { kind = 'state', name: nameOf = (count) => `step-${String(count).padStart(6, '0')}`, ttlSeconds }: SaveNowOptions,
): Observable<Checkpoint> {
  const name = nameOf(steps);
  const ttl = ttlSeconds === undefined ? {} : { ttlSeconds };
  const paths: Record<string, Observable<{ readonly path: string }>> = {};
  if (kind !== 'sampler') paths['statePath'] = from(trainer.saveState(name, ttl));
  if (kind !== 'state') {
    if (trainer.saveWeightsForSampler === undefined) throw missingMethod('saveWeightsForSampler', 'saving a sampler');
    paths['samplerPath'] = from(trainer.saveWeightsForSampler(name, ttl));
  }
  return forkJoin(paths).pipe(
    map((found) => ({
      name,
      steps,
      batches,
      ...Object.fromEntries(Object.entries(found).map(([key, { path }]) => [key, path])),
      kept: ttlSeconds === undefined,
      ...(ttlSeconds === undefined ? {} : { expiresAtMs: scheduler.now() + ttlSeconds * 1000 }),
    })),
  );
}
