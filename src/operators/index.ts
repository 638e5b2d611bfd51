/**
 * Streams in, streams out: training, sampling, batching, retries, metrics. Each is cold, cancellable and bounded.
 *
 * @module tinker-rx/operators
 */
export { backpressure$, type BackpressureEvent } from './backpressure.js';
export { batch, type BatchOptions } from './batch.js';
export { batchByWeight, type BatchByWeightOptions } from './batchByWeight.js';
export { checkpointEvery, type CheckpointEveryOptions } from './checkpointEvery.js';
export { concatMapAhead, type ConcatMapAheadOptions } from './concatMapAhead.js';
export { continueFrom } from './continueFrom.js';
export {
  evaluateEvery,
  type EvaluateEveryOptions,
  type EvaluateSamplerOptions,
  type ValidateOptions,
} from './evaluateEvery.js';
export { currentGate, Gate, withGate } from './gate.js';
export { type Dataset, interleave, type InterleaveOptions } from './interleave.js';
export { keepGate } from './keepGate.js';
export { markBatches, type MarkBatchesOptions } from './markBatches.js';
export { mergeMapWeighted, type MergeMapWeightedOptions } from './mergeMapWeighted.js';
export { type MetricSummary, type Reduced, reduceMetrics, type ReduceMetricsOptions } from './reduceMetrics.js';
export { repeatEpochs, type RepeatEpochsOptions } from './repeatEpochs.js';
export { retryBackoff, type RetryBackoffOptions } from './retryBackoff.js';
export {
  type PromptItem,
  type Sampleable,
  type Sampled,
  type SampleFailure,
  sampleFrom,
  type SampleFromOptions,
} from './sampleFrom.js';
export { constant, cosine, type DecayOptions, linear, type Schedule, type WarmUpOptions } from './schedules.js';
export { settle } from './settle.js';
export { shuffle, type ShuffleOptions } from './shuffle.js';
export { type Evaluation, type Step } from './step.js';
export { takeUntilIdle, type TakeUntilIdleOptions } from './takeUntilIdle.js';
export { type SupervisedRenderer, toDatums, type ToDatumsOptions } from './toDatums.js';
export { tokensPerSecond, type TokensPerSecondOptions } from './tokensPerSecond.js';
export { type Pair, toPairs, type ToPairsOptions } from './toPairs.js';
export { train, type TrainOptions } from './train.js';
export { type StopCheckpointOptions, trainUntil, type TrainUntilOptions } from './trainUntil.js';
export { type ForwardPasses, type Saves, type TakesSnapshots, type Trainable } from './Trainable.js';
export { trainPreferences, type TrainPreferencesOptions } from './trainPreferences.js';
export {
  type Checkpoint,
  type Mark,
  type MarkedBatch,
  type MarkOperator,
  type MarkPoint,
  type MarkResult,
  numberBatches,
  type StepAdditions,
  type TrainingBatch,
} from './trainingBatch.js';
export { type ComputesLogprobs, withReference, type WithReferenceOptions } from './withReference.js';
export { withSoftTargets, type WithSoftTargetsOptions } from './withSoftTargets.js';
