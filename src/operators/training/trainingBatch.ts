import { map, type Observable, type ObservableInput, type SchedulerLike } from 'rxjs';
import type { Datum } from '../../wire/datum.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { Step } from './step.js';

/** Where in the run a mark is carried out, and what it has to work with. */
export interface MarkPoint {
  /** The step that was just submitted, counted from 0. */
  readonly index: number;
  /** How many steps the weights hold: `index + 1`. */
  readonly steps: number;
  /** How many batches of the data are trained on after this step. */
  readonly batches: number;
  /** Whether the step holds the last batch of the data; known only behind an operator with `atEnd`. */
  readonly last: boolean;
  /** The clock of the run. */
  readonly scheduler: SchedulerLike;
  /**
   * Starts a call at once, hot or cold, and gives its result, also to those who ask later. A call that can be cancelled
   * is, when the run is torn down before it has a result. A failure goes to those who ask for the result.
   */
  readonly start: <R>(call: ObservableInput<R>) => Observable<R>;
}

/** What comes of a mark, where anything does. */
export interface MarkResult {
  /** Subscribed at once; the step is emitted, with what this gives last added to it, when it has completed. */
  readonly adds?: ObservableInput<StepAdditions>;
  /**
   * Called when the step's results have arrived and no other evaluation is running. What it gives last comes out as one of
   * the `evaluations` of a later step, while training continues.
   */
  readonly evaluation?: () => ObservableInput<Readonly<Record<string, number>>>;
  /** Called, and waited for, once the step is out, and so is in every log. */
  readonly afterwards?: (step: Step) => ObservableInput<unknown>;
}

/** What a mark may add to its step: a checkpoint, and metrics beside those the service gave. */
export type StepAdditions = Partial<Pick<Step, 'checkpoint' | 'metrics'>>;

/**
 * What is to happen right after a step. `train` calls it when the step's passes and its optimizer step are submitted:
 * what it calls on the trainer, synchronously, takes its turn right behind them. `T` is what it needs of the trainer.
 * A throw is the step's error. Where several batches make a step, a mark they share is called once.
 */
export type Mark<T = unknown> = (trainer: T, at: MarkPoint) => MarkResult | void;

/** A batch that knows its place in the data and what is to happen right after its step. */
export interface MarkedBatch<T = unknown> {
  /** The batch's datums. */
  readonly data: readonly Datum[];
  /** Its place in the stream of all batches, counted from 0, also in a run that was resumed. */
  readonly position: number;
  /** What to do right after this batch's step. */
  readonly marks: readonly Mark<T>[];
  /** Whether it is the last batch, where an operator with `atEnd` has found out. Default: not known. */
  readonly last?: boolean;
}

/** What `train` takes: the datums of a batch, bare or marked. `T` is what the marks need of the trainer. */
export type TrainingBatch<T = unknown> = readonly Datum[] | MarkedBatch<T>;

/** An operator that marks batches, whatever marks they have already. `N` is what its own mark needs of the trainer. */
export type MarkOperator<N> = <T = unknown>(source: Observable<TrainingBatch<T>>) => Observable<MarkedBatch<T & N>>;

/** A checkpoint that was saved. */
export interface Checkpoint {
  /** The name it was saved under. */
  readonly name: string;
  /** How many steps it holds. */
  readonly steps: number;
  /** How many batches of the data were trained on: where a resumed run continues. */
  readonly batches: number;
  /** `tinker://` path to resume training from. */
  readonly statePath?: string;
  /** `tinker://` path to sample from. */
  readonly samplerPath?: string;
  /** Whether it is kept for good. */
  readonly kept: boolean;
  /** When the service drops it, in milliseconds by the scheduler's clock. */
  readonly expiresAtMs?: number;
}

/** Bare batches numbered from 0; marked ones as they are. */
export function numberBatches<T>(source: Observable<TrainingBatch<T>>): Observable<MarkedBatch<T>> {
  return source.pipe(
    map((batch, position) => {
      checkBatch(batch, position);
      return 'marks' in batch ? batch : { data: batch, position, marks: [] };
    }),
  );
}

/** @throws ValidationError saying which operator is missing before `train` */
function checkBatch(batch: unknown, position: number): void {
  const { data = batch, modelInput } = (batch ?? {}) as { readonly data?: unknown; readonly modelInput?: unknown };
  if (!Array.isArray(data)) {
    throw new ValidationError(
      modelInput === undefined
        ? `batch ${position} is neither a list of datums nor a marked batch: put toDatums(renderer) and batch({ size }) before train`
        : `batch ${position} is a single datum: put batch({ size }) between toDatums and train`,
    );
  }
  if (data.length > 0 && (data[0] as Partial<Datum> | null)?.modelInput === undefined)
    throw new ValidationError(`batch ${position} holds no datums: put toDatums(renderer) before batch`);
}
