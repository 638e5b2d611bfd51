import { EMPTY, from, type Observable, type ObservableInput, VirtualTimeScheduler } from 'rxjs';
import type { MarkedBatch, MarkPoint, MarkResult } from '../../src/operators/training/trainingBatch.js';

/** Carries out a batch's marks as `train` would right after its step, with one step a batch. */
export function carryOut<T>(batch: MarkedBatch<T>, trainer: T, at: Partial<MarkPoint> = {}): MarkResult[] {
  const point: MarkPoint = {
    index: batch.position,
    steps: batch.position + 1,
    batches: batch.position + 1,
    last: batch.last ?? false,
    scheduler: new VirtualTimeScheduler(),
    start: <R>(call: ObservableInput<R>): Observable<R> => from(call),
    ...at,
  };
  return batch.marks.flatMap((mark) => mark(trainer, point) ?? []);
}

/** A trainer that is asked to save, and never has: for marks that are only looked at. */
export function saving() {
  const saved: string[] = [];
  const save = (kind: string) => (name: string, options: object) => {
    saved.push([kind, name, ...(Object.values(options) as unknown[])].join(' '));
    return EMPTY;
  };
  return { saved, saveState: save('state'), saveWeightsForSampler: save('sampler') };
}
