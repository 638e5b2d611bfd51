// What the account's calls return, as users see it. A test holds each of these types against the codec that reads it.

/** One thing that happened in the account. */
export interface AuditLogEntry {
  /** When: ISO 8601. */
  readonly timestamp: string;
  /** What happened, as the service names it. */
  readonly event: string;
  /** Details, as the service writes them. */
  readonly eventDetails: { [x: string]: unknown };
  /** The model it is about, if any. */
  readonly modelId?: string;
  /** The checkpoint it is about, if any. */
  readonly tinkerPath?: string;
  /** The purpose that was given, if any. */
  readonly purpose?: string;
}
/** The audit log of the account. */
export interface AuditLogResponse {
  /** What happened, one entry per event. */
  readonly entries: AuditLogEntry[];
}

/** What was billed: tokens trained or sampled, checkpoints, or storage. Fields of other kinds are absent. */
export interface BillingEventInfo {
  /** What kind of use it is. */
  readonly type: string;
  /** Number of tokens. */
  readonly tokenCount?: number;
  /** Whether the tokens came from a cache. */
  readonly cached?: boolean;
  /** Number of pieces, such as checkpoints. */
  readonly count?: number;
  /** Storage in gigabyte-hours. */
  readonly gigabyteHours?: number;
}
/** One kind of use in one span of time. */
export interface BillingUsageEvent {
  /** Start of the span: ISO 8601. */
  readonly bucketStart: string;
  /** End of the span: ISO 8601. */
  readonly bucketEnd: string;
  /** The model that was used. */
  readonly baseModel?: string;
  /** Who used it. */
  readonly userId?: string;
  /** That user's name. */
  readonly userName?: string;
  /** The session it was used in. */
  readonly sessionId?: string;
  /** The project it counts towards. */
  readonly projectId?: string;
  /** Estimated cost in US dollars. */
  readonly estimatedCostUsd?: number;
  /** Price in US dollars per million tokens. */
  readonly effectiveRateUsdPerMillionTokens?: number;
  /** Price in US dollars per gigabyte and month. */
  readonly effectiveRateUsdPerGigabyteMonth?: number;
  /** What was used, and how much of it. */
  readonly eventInfo: BillingEventInfo;
}
/** What the account used and what it costs. */
export interface BillingUsageResponse {
  /** The use, one entry per span of time and kind. */
  readonly data: BillingUsageEvent[];
  /** The sessions the use belongs to, by id. */
  readonly sessions: {
    readonly [sessionId: string]: {
      /** What was stored with the session. */
      readonly userMetadata?: Readonly<Record<string, string>>;
    };
  };
  /** Until when costs are complete: ISO 8601. */
  readonly costDataThrough?: string;
}

/** The checkpoints of one user in one project. */
export interface CheckpointStorageUsageItem {
  /** The project. */
  readonly projectId?: string;
  /** The user's URN. */
  readonly orgUserUrn?: string;
  /** The user's e-mail address. */
  readonly userEmail?: string;
  /** The user's name. */
  readonly userName?: string;
  /** How many checkpoints there are. */
  readonly checkpointCount: number;
  /** Their size in bytes. */
  readonly sizeBytes: number;
  /** Their size in gigabytes. */
  readonly sizeGigabytes: number;
  /** Estimated cost per month in US dollars. */
  readonly estimatedMonthlyCostUsd?: number;
}
/** How much storage checkpoints use, and what it costs. */
export interface CheckpointStorageUsageResponse {
  /** Price in US dollars per gigabyte and month. */
  readonly effectiveRateUsdPerGigabyteMonth?: number;
  /** The use, one entry per project and user. */
  readonly data: CheckpointStorageUsageItem[];
}

/** What the service knows about the API key in use. */
export interface ApiKeyResponse {
  /** The key's id. */
  readonly keyId?: string | number;
  /** The key's name. */
  readonly name?: string;
  /** A note that was stored with it. */
  readonly note?: string;
  /** Whom it belongs to. */
  readonly details?: {
    /** The organisation. */
    readonly orgDetails?: {
      /** The organisation's name. */
      readonly name: string;
    };
    /** The user. */
    readonly userDetails?: {
      /** The user's e-mail address. */
      readonly email: string;
    };
  };
}
