import { map, type Observable, type ObservableInput } from 'rxjs';
import type { SamplingClient } from '../client/SamplingClient.js';
import type { Datum } from '../wire/datum.js';

/** Says that a checkpoint is to be saved right after the step of the batch that carries it. Made by `checkpointEvery`. */
export interface CheckpointMark {
  readonly type: 'checkpoint';
  /** What to save: the state to resume from, the weights to sample from, or both. */
  readonly kind: 'state' | 'sampler' | 'both';
  /** The checkpoint's name, given how many steps it holds. */
  readonly name: (steps: number) => string;
  /** Whether it is kept for good; others may expire or be removed. */
  readonly kept: boolean;
  readonly ttlSeconds?: number | undefined;
  /** Run, and waited for, once the step that brings the checkpoint is out, and so is in every log. */
  readonly afterwards?: ((checkpoint: Checkpoint) => ObservableInput<unknown>) | undefined;
}

/** Says that the weights right after the step of the batch that carries it are to be evaluated. Made by `evaluateEvery`. */
export interface EvaluationMark<S = SamplingClient> {
  readonly type: 'evaluation';
  readonly evaluate: (sampler: S, at: EvaluationPoint) => ObservableInput<Readonly<Record<string, number>>>;
}

/** Where in the run an evaluation stands. */
export interface EvaluationPoint {
  /** The step whose weights are evaluated, counted from 0. */
  readonly index: number;
  /** How many steps the weights hold: `index + 1`. */
  readonly steps: number;
}

export type Mark<S = SamplingClient> = CheckpointMark | EvaluationMark<S>;

/** A batch that knows its place in the data and what is to happen right after its step. */
export interface MarkedBatch<S = SamplingClient> {
  readonly data: readonly Datum[];
  /** Its place in the stream of all batches, counted from 0, also in a run that was resumed. */
  readonly position: number;
  readonly marks: readonly Mark<S>[];
}

/** What `train` takes: the datums of a batch, bare or marked. */
export type TrainingBatch<S = SamplingClient> = readonly Datum[] | MarkedBatch<S>;

/** A checkpoint that was saved. */
export interface Checkpoint {
  readonly name: string;
  /** How many steps it holds. */
  readonly steps: number;
  /** How many batches of the data were trained on: where a resumed run goes on. */
  readonly batches: number;
  /** `tinker://` path to resume training from. */
  readonly statePath?: string;
  /** `tinker://` path to sample from. */
  readonly samplerPath?: string;
  readonly kept: boolean;
  /** When the service drops it, by the scheduler's clock. */
  readonly expiresAtMs?: number;
}

/** Bare batches numbered from 0; marked ones as they are. */
export function numberBatches<S>(source: Observable<TrainingBatch<S>>): Observable<MarkedBatch<S>> {
  return source.pipe(map((batch, position) => (isMarked(batch) ? batch : { data: batch, position, marks: [] })));
}

function isMarked<S>(batch: TrainingBatch<S>): batch is MarkedBatch<S> {
  return !Array.isArray(batch);
}
