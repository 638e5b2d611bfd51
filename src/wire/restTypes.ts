// What the REST calls return, as users see it. A test holds each of these types against the codec that reads it.

/** A saved state of a model. */
export interface Checkpoint {
  /** `weights/name` or `sampler_weights/name`: unique within its training run. */
  readonly checkpointId: string;
  /** `training` (weights and optimizer), `sampler` (to sample from) or `external` (for use outside the service). */
  readonly checkpointType: 'training' | 'sampler' | 'external';
  /** When it was saved: ISO 8601, as the service wrote it. */
  readonly time: string;
  /** Its `tinker://` path, to load it or to sample from it. */
  readonly tinkerPath: string;
  /** Its size in bytes, if the service reports it. */
  readonly sizeBytes?: number;
  /** Whether everybody may read it. */
  readonly public: boolean;
  /** What was stored with it. */
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** When it will be deleted: ISO 8601. Absent: never. */
  readonly expiresAt?: string;
  /** The model it was trained from, if the service reports it. */
  readonly baseModel?: string;
}

/** Which part of a list a page is. */
export interface Cursor {
  /** How many entries come before this page. */
  readonly offset: number;
  /** How many entries the page has at most. */
  readonly limit: number;
  /** How many entries there are in all. */
  readonly totalCount: number;
}

/** Checkpoints of a run, or one page of a user's. */
export interface CheckpointsListResponse {
  /** The checkpoints. */
  readonly checkpoints: Checkpoint[];
  /** Which page it is; absent if this is all. */
  readonly cursor?: Cursor;
}

/** One model in training, from its creation on. */
export interface TrainingRun {
  /** Its id, which is also the model's id. */
  readonly trainingRunId: string;
  /** The model it was created from. */
  readonly baseModel: string;
  /** Who created it. */
  readonly modelOwner: string;
  /** Whether it trains LoRA adapters. */
  readonly isLora: boolean;
  /** Whether the service lost its state: it cannot be continued. */
  readonly corrupted: boolean;
  /** The rank of the LoRA adapters. */
  readonly loraRank?: number;
  /** When it was last used: ISO 8601, as the service wrote it. */
  readonly lastRequestTime: string;
  /** The newest checkpoint that training can continue from. */
  readonly lastCheckpoint?: Checkpoint;
  /** The newest checkpoint to sample from. */
  readonly lastSamplerCheckpoint?: Checkpoint;
  /** What was stored with it. */
  readonly userMetadata?: Readonly<Record<string, string>>;
}

/** One page of training runs. */
export interface TrainingRunsResponse {
  /** The runs. */
  readonly trainingRuns: TrainingRun[];
  /** Which page it is. */
  readonly cursor: Cursor;
}

/** Where to download the files of an external checkpoint. */
export interface ExternalWeightsUrlsResponse {
  /** A signed URL for each file name. */
  readonly urls: Readonly<Record<string, string>>;
  /** Until when the URLs are valid: ISO 8601. */
  readonly expires: string;
}

/** What belongs to a session. */
export interface GetSessionResponse {
  /** The ids of its training runs. */
  readonly trainingRunIds: string[];
  /** The ids of its samplers. */
  readonly samplerIds: string[];
  /** What was stored with it. */
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** The name it was given. */
  readonly displayName?: string;
}

/** One page of sessions. */
export interface ListSessionsResponse {
  /** The sessions' ids. */
  readonly sessions: string[];
}

/** What failed in a session: a request, a training run or a sampling session. */
export type FailedReason =
  | {
      /** A request failed. */
      readonly type: 'request';
      /** Its id. */
      readonly requestId: string;
      /** What kind of work it was. */
      readonly requestType: string;
    }
  | {
      /** A training run failed. */
      readonly type: 'training_run';
      /** Its id. */
      readonly trainingRunId: string;
    }
  | {
      /** A sampling session failed. */
      readonly type: 'sampling_session';
      /** Its id. */
      readonly samplingSessionId: string;
    };

/** The state of a session. A type this release does not know is kept as `{ type }`. */
export type SessionStatus =
  | {
      /** The session is open. */
      readonly type: 'active';
    }
  | {
      /** The session failed. */
      readonly type: 'failed';
      /** Whose fault it was, as the service reports it. */
      readonly category: string;
      /** What failed. */
      readonly reason: FailedReason;
      /** Why, in words. */
      readonly message: string;
    }
  | {
      /** The session was cancelled. */
      readonly type: 'cancelled';
      /** Why, in words. */
      readonly detail?: string;
    }
  | {
      /** The client ended the session. */
      readonly type: 'client_finished';
      /** How it ended. */
      readonly reason: {
        /** `success`, `errored` or `interrupted`. */
        readonly type: string;
      };
      /** Why, in words. */
      readonly detail?: string;
    }
  | {
      /** A state that this release does not know. */
      readonly type: string;
    };

/** Where the next page of a session search starts. */
export interface SessionSearchCursor {
  /** When the last session of the page was created: ISO 8601. */
  readonly lastCreatedAt: string;
  /** The id of that session. */
  readonly lastSessionId: string;
}

/** One session, as a search returns it. */
export interface SessionSummary {
  /** Its id. */
  readonly sessionId: string;
  /** When it was created: ISO 8601. */
  readonly createdAt: string;
  /** Who created it. */
  readonly owner: string;
  /** The project it belongs to. */
  readonly projectId: string;
  /** Its state, if the service reports it. */
  readonly status?: SessionStatus;
  /** How many checkpoints its runs have. */
  readonly checkpointsCount: number;
  /** The name it was given. */
  readonly displayName?: string;
  /** What was stored with it. */
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** The size of its checkpoints together, in bytes. */
  readonly checkpointStorageBytes?: number;
}

/** One page of a session search. */
export interface SessionSearchResponse {
  /** The sessions, newest first. */
  readonly sessions: SessionSummary[];
  /** Where the next page starts; absent on the last one. */
  readonly nextCursor?: SessionSearchCursor;
}

/** Where the next page of a checkpoint search starts. */
export interface CheckpointSearchCursor {
  /** When the last checkpoint of the page was saved: ISO 8601. */
  readonly lastCreatedAt: string;
  /** The id of that checkpoint. */
  readonly lastCheckpointUuid: string;
}

/** One page of a checkpoint search. */
export interface CheckpointSearchResponse {
  /** The checkpoints, newest first. */
  readonly checkpoints: Checkpoint[];
  /** Where the next page starts; absent on the last one. */
  readonly nextCursor?: CheckpointSearchCursor;
}
