/**
 * The clients, with the method names of the Python SDK in camelCase; futures, errors and events.
 *
 * @module tinker-rx
 */
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
  AuditLogResponse,
  ApiKeyResponse,
  BillingEventInfo,
  BillingUsageResponse,
  CheckpointStorageUsageResponse,
} from './wire/admin.js';
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
  GetSessionResponse,
  ListSessionsResponse,
  SessionSearchCursor,
  SessionSearchResponse,
  SessionStatus,
  SessionSummary,
  TrainingRun,
  TrainingRunsResponse,
} from './wire/rest.js';
export { topkToRows } from './wire/sampling.js';
export type {
  GetSamplerResponse,
  PromptAltTokens,
  SampledSequence,
  SampleResponse,
  SamplingParams,
  StopReason,
  TopkLogprobs,
} from './wire/sampling.js';
export type {
  ClientConfig,
  DynamicConfig,
  FinishStatus,
  GetServerCapabilitiesResponse,
  SupportedModel,
} from './wire/session.js';
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
  GetInfoResponse,
  LoraConfig,
  LossFnConfig,
  LossFnConfigs,
  LossFnType,
  OptimStepResponse,
  PpoConfig,
} from './wire/training.js';
export type { ExternalWeightsUpload, LoadWeightsResponse, WeightsInfoResponse } from './wire/weights.js';
