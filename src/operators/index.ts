/**
 * Streams in, streams out: training, sampling, batching, retries, metrics. Each is cold, cancellable and bounded.
 *
 * @module tinker-rx/operators
 */
import '../support/checkNode.js';
export { anomaly, type Anomaly, type AnomalyOptions } from './metrics/anomaly.js';
export { backpressure$, type BackpressureEvent } from './pressure/backpressure.js';
export { batch, type BatchOptions } from './data/batch.js';
export { batchByWeight, type BatchByWeightOptions } from './data/batchByWeight.js';
export { broadcast, type BroadcastOptions, type Pipelines, type Routed } from './flow/broadcast.js';
export { checkpointEvery, type CheckpointEveryOptions } from './training/checkpointEvery.js';
export { concatMapAhead, type ConcatMapAheadOptions } from './flow/concatMapAhead.js';
export { continueFrom } from './training/continueFrom.js';
export { decide, type DecideOptions, type Decision } from './sampling/decide.js';
export {
  evaluateEvery,
  type EvaluateEveryOptions,
  type EvaluateSamplerOptions,
  type ValidateOptions,
} from './training/evaluateEvery.js';
export { type AfterFailure, type DeadLetter, type FailurePolicy } from './flow/FailurePolicy.js';
export { findBottleneck, flow$, type FlowReport } from './pressure/flow.js';
export { currentGate, Gate, withGate } from './pressure/gate.js';
export { type Dataset, interleave, type InterleaveOptions } from './data/interleave.js';
export { keepGate } from './pressure/keepGate.js';
export { markBatches, type MarkBatchesOptions } from './training/markBatches.js';
export { mergeMapWeighted, type MergeMapWeightedOptions } from './flow/mergeMapWeighted.js';
export { type MetricSummary, type Reduced, reduceMetrics, type ReduceMetricsOptions } from './metrics/reduceMetrics.js';
export { type MetricOptions, movingMean, type MovingMeanOptions } from './metrics/movingMean.js';
export { named } from './pressure/named.js';
export { partition, type PartitionOptions } from './flow/partition.js';
export { plateau, type PlateauOptions } from './metrics/plateau.js';
export { rateLimit, type RateLimitOptions } from './flow/rateLimit.js';
export { type PlateauRate, rateOnPlateau, type RateOnPlateauOptions } from './training/rateOnPlateau.js';
export { repeatEpochs, type RepeatEpochsOptions } from './data/repeatEpochs.js';
export { retryBackoff, type RetryBackoffOptions } from './flow/retryBackoff.js';
export {
  type PromptItem,
  type Sampleable,
  type Sampled,
  type SampleFailure,
  sampleFrom,
  type SampleFromOptions,
} from './sampling/sampleFrom.js';
export {
  constant,
  cosine,
  type DecayOptions,
  linear,
  type Schedule,
  type WarmUpOptions,
} from './training/schedules.js';
export { settle } from './flow/settle.js';
export { shuffle, type ShuffleOptions } from './data/shuffle.js';
export { slope, type SlopeOptions } from './metrics/slope.js';
export { type Evaluation, type Step } from './training/step.js';
export { takeUntilIdle, type TakeUntilIdleOptions } from './flow/takeUntilIdle.js';
export { type SupervisedRenderer, toDatums, type ToDatumsOptions } from './data/toDatums.js';
export { TokenBucket, type TokenBucketOptions } from './flow/TokenBucket.js';
export { toDecisions, type ToDecisionsOptions } from './data/toDecisions.js';
export { tokensPerSecond, type TokensPerSecondOptions } from './metrics/tokensPerSecond.js';
export { type Pair, toPairs, type ToPairsOptions } from './data/toPairs.js';
export { train, type TrainOptions } from './training/train.js';
export { type StopCheckpointOptions, trainUntil, type TrainUntilOptions } from './training/trainUntil.js';
export { type ForwardPasses, type Saves, type TakesSnapshots, type Trainable } from './training/Trainable.js';
export { trainPreferences, type TrainPreferencesOptions } from './training/trainPreferences.js';
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
} from './training/trainingBatch.js';
export { unsettle } from './flow/unsettle.js';
export { type ComputesLogprobs, withReference, type WithReferenceOptions } from './data/withReference.js';
export { withSoftTargets, type WithSoftTargetsOptions } from './data/withSoftTargets.js';
