import type { TensorData } from '../../wire/tensor.js';
import type { Checkpoint } from './trainingBatch.js';

/** The outcome of an evaluation asked for by `evaluateEvery`. */
export interface Evaluation {
  /** The step whose weights were evaluated, counted from 0. */
  readonly index: number;
  /** What the evaluation returned, by name. */
  readonly metrics: Readonly<Record<string, number>>;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
}

/** One step of training, as `train` emits it: plain data, ready for a log. */
export interface Step {
  /** Counted from 0, also over a resume. */
  readonly index: number;
  /**
   * What the loss is per unit of weight: the sum divided by the sum of all `weights`, where every datum has them; else
   * the sum per datum; for a custom loss (a function, or recorded by `defineLoss`), its own value. NaN if the service reports no loss.
   */
  readonly loss: number;
  /** The loss as the service sums it, over all tokens and datums. */
  readonly lossSum: number;
  /** All metrics of the step's passes, reduced, and those of its optimizer step, under the service's names. */
  readonly metrics: Readonly<Record<string, number>>;
  /** How many datums the step trained on. */
  readonly datums: number;
  /** How many tokens those datums have together. */
  readonly tokens: number;
  /** The learning rate of the step's optimizer update. */
  readonly learningRate: number;
  /** How many batches of the data are trained on after this step. */
  readonly batches: number;
  /** From submitting the step to its result; steps overlap. */
  readonly durationMs: number;
  /** How many cycles of the service passed since the step before, where it tells (`clock_cycle:unique`). */
  readonly cycles?: number;
  /** The checkpoint saved right after this step. */
  readonly checkpoint?: Checkpoint;
  /** Evaluations, of this or earlier steps, that have finished since the step before. */
  readonly evaluations?: readonly Evaluation[];
  /** That the run seems to have diverged, told once: the loss is not finite, or 30 times that of the first step. */
  readonly warning?: string;
  /** The tensors the loss gave for each datum, where `keepOutputs` asks for them. */
  readonly outputs?: readonly Readonly<Record<string, TensorData>>[];
}
