/**
 * The clients, with the method names of the Python SDK in camelCase; futures, errors and events.
 *
 * @module tinker-rx
 */
import './support/checkNode.js';
export * from './client/index.js';
export { CredentialStore, type KeyRecord } from './transport/credentials.js';
export {
  TransportFailure,
  type Lane,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from './transport/Transport.js';
export type {
  ApiKeyResponse,
  AuditLogEntry,
  AuditLogResponse,
  BillingEventInfo,
  BillingUsageEvent,
  BillingUsageResponse,
  CheckpointStorageUsageItem,
  CheckpointStorageUsageResponse,
} from './wire/adminTypes.js';
export type { DmelChunk, EncodedTextChunk, ImageAssetPointerChunk, ImageChunk, ModelInputChunk } from './wire/chunk.js';
export type { CustomLossGraph, CustomLossInput, CustomLossNode } from './wire/customLoss.js';
export type { Datum, ProvenanceSpan } from './wire/datum.js';
export type { QueueState, RequestErrorCategory } from './wire/futures.js';
export { ModelInput } from './wire/modelInput.js';
export type {
  AdamOptimizerConfig,
  AdamParams,
  DimuonOptimizerConfig,
  DimuonParams,
  OptimizerConfig,
  OptimizerParams,
  OtherOptimizer,
} from './wire/optimizer.js';
export type {
  Checkpoint,
  CheckpointSearchCursor,
  CheckpointSearchResponse,
  CheckpointsListResponse,
  Cursor,
  ExternalWeightsUrlsResponse,
  FailedReason,
  GetSessionResponse,
  ListSessionsResponse,
  SessionSearchCursor,
  SessionSearchResponse,
  SessionStatus,
  SessionSummary,
  TrainingRun,
  TrainingRunsResponse,
} from './wire/restTypes.js';
export { topkToRows } from './wire/sampling.js';
export type {
  PromptAltTokens,
  SampledSequence,
  SampleResponse,
  SamplingParams,
  StopReason,
  TopkLogprobs,
} from './wire/sampling.js';
export type { FinishStatus } from './wire/session.js';
export type {
  ClientConfig,
  DynamicConfig,
  GetServerCapabilitiesResponse,
  SupportedModel,
} from './wire/sessionTypes.js';
export {
  TensorData,
  type NumericArray,
  type SparseIndices,
  type TensorDtype,
  type TensorInput,
} from './wire/tensor.js';
export { parseTinkerPath, type CheckpointType, type TinkerPath } from './wire/tinkerPath.js';
export type {
  ClipConfig,
  CustomConfig,
  DroConfig,
  ForwardBackwardOutput,
  LossFnConfig,
  LossFnConfigs,
  LossFnType,
  PpoConfig,
} from './wire/training.js';
export type {
  ExternalWeightsUpload,
  GetInfoResponse,
  GetSamplerResponse,
  LoadWeightsResponse,
  LoraConfig,
  OptimStepResponse,
  WeightsInfoResponse,
} from './wire/modelTypes.js';
