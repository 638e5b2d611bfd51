// What the service says about itself, as users see it. A test holds each of these types against the codec that reads it.

/** The service's flags, read once before anything else. */
export interface ClientConfig {
  /** Whether API keys are exchanged for short-lived tokens. Default false. */
  readonly pjwtAuthEnabled: boolean;
  /** Which kind of credential is tried first. Default `api_key`. */
  readonly credentialDefaultSource: string;
  /** Bytes of sample requests in flight at once. Default 10 MiB. */
  readonly sampleDispatchBytesSemaphoreSize: number;
  /** Bytes of results being fetched at once. Default 50 MiB. */
  readonly inflightResponseBytesSemaphoreSize: number;
  /** Whether the chunks of one pass are sent at once rather than one after the other. Default true. */
  readonly parallelFwdbwdChunks: boolean;
  /** Whether passes are compressed. Default false. */
  readonly protoCompressFwdbwd: boolean;
  /** Maximum datums per chunk of a pass. Default 1024. */
  readonly fwdbwdMaxChunkLen: number;
  /** Maximum bytes per chunk of a pass. Default 5,000,000. */
  readonly fwdbwdMaxChunkBytesCount: number;
  /** Bytes of passes in flight at once. Default 50,000,000. */
  readonly fwdbwdDispatchBytesSemaphoreSize: number;
  /** How long a billing problem may pause work before it fails, in seconds. Default 3600. */
  readonly billingExceptionMaxPauseDurationSec: number;
  /** Whether failed samples are not retried. Default false. */
  readonly sampleNoRetries: boolean;
  /** Whether samples fail if none completes for two hours. Default true. */
  readonly sampleEnableStuckDetection: boolean;
  /** Maximum samples in flight at once. Default 2000. */
  readonly sampleMaxConcurrentRequests: number;
  /** Whether a model is created and loaded in one request. Default false. */
  readonly createModelViaLoadWeights: boolean;
  /** Whether results of samples are fetched together rather than one by one. Default false. */
  readonly sampleUseRetrieveFutures: boolean;
  /** Whether several clients may share a sampling session. Default false. */
  readonly sampleJoinSamplingSession: boolean;
  /** Whether the service runs custom losses. Default false. */
  readonly customLossServerSide: boolean;
}

/** Flags that the service may change while a client runs. */
export interface DynamicConfig {
  /** How often they are read again, in seconds. Default 300. */
  readonly refreshIntervalSec: number;
  /** Whether abandoned samples are cancelled at the service. Default false. */
  readonly sampleCancelEnabled: boolean;
  /** Maximum samples cancelled by one request. Default 64. */
  readonly sampleCancelMaxBatchSize: number;
}

/** One model of the service. */
export interface SupportedModel {
  /** Its name, for `baseModel`. */
  readonly modelName?: string;
  /** Maximum length of prompt and answer together, in tokens. */
  readonly maxContextLength?: number;
  /** Whether it can be trained. Absent: the service does not say. */
  readonly trainable?: boolean;
  /** Whether it can be sampled from. Absent: the service does not say. */
  readonly sampleable?: boolean;
}

/** What the service offers. */
export interface GetServerCapabilitiesResponse {
  /** Its models. */
  readonly supportedModels: SupportedModel[];
}
