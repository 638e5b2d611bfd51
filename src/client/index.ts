export { isLeft, isRight, type Either } from 'fp-ts/lib/Either.js';
export {
  AdminClient,
  type AuditLogOptions,
  type BillingUsageOptions,
  type StorageUsageOptions,
} from './AdminClient.js';
export type { CallOptions } from './CallOptions.js';
export { combineOutputs } from '../wire/combineOutputs.js';
export { SDK_VERSION, type ConnectOptions } from './connection/connect.js';
export type { CustomLossDefinition, CustomLossFn, CustomLossResult, LossHandle } from './training/customLoss.js';
export * from './errors.js';
export type { RequestType, TinkerEvent, TinkerEventType, WorkKind } from './events.js';
export { describe as describeEvent, logTo, type LogLevel } from './session/log.js';
export {
  RestClient,
  type AccessOptions,
  type AccessScope,
  type CheckpointSearch,
  type CopyWeightsOptions,
  type ExternalWeightsUploadOptions,
  type Identity,
  type ListSessionsOptions,
  type ListTrainingRunsOptions,
  type PageOptions,
  type SearchOwner,
  type SessionSearch,
} from './RestClient.js';
export {
  SamplingClient,
  type Asked,
  type ReplyOptions,
  type ReplyStreamOptions,
  type SampledReply,
  type ComputeLogprobsOptions,
  type FromHandleOptions,
  type SampleOptions,
  type SamplingClientOptions,
  type SamplingRetryOptions,
} from './SamplingClient.js';
export type { SamplerSource } from './sampling/samplingSessions.js';
export { ServiceClient, type CloseOptions, type ServiceClientOptions } from './ServiceClient.js';
export { SavedWeights } from './training/SavedWeights.js';
export type { CreateLoraTrainingClientOptions, FromStateOptions } from './training/TrainingModels.js';
export { TinkerFuture, type OnAccepted } from './TinkerFuture.js';
export type { BudgetUse, PendingCall, PendingWork } from './session/pending.js';
export {
  TrainingClient,
  type LoadOptions,
  type LossOptions,
  type SaveExternalOptions,
  type SaveOptions,
  type SaveStateOptions,
} from './TrainingClient.js';
