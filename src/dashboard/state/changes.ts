import type { FlowReport } from '../../operators/pressure/flow.js';
import type { Checkpoint } from '../../operators/training/trainingBatch.js';

/** A sample as the page shows it: text in pieces, each with its token and how likely it was. */
export interface DashboardSample {
  /** Counted from 0 in the order of arrival. */
  readonly id: number;
  /** When it was shown, in milliseconds since 1970. */
  readonly atMs: number;
  /** The run it belongs to, if any. */
  readonly run?: string;
  /** The prompt as text. */
  readonly prompt: string;
  /** A piece is what one token says; if a character takes several tokens, what they say together. */
  readonly pieces: readonly string[];
  /** The tokens of each piece. */
  readonly tokens: readonly (number | readonly number[])[];
  /** The log-probability of each piece. */
  readonly logprobs?: readonly (number | null)[] | undefined;
  /** Why it ended: `length` or `stop`. */
  readonly stopReason?: string;
  /** Its reward, if any. */
  readonly reward?: number;
  /** How many tokens it has; more than are shown if it is very long. */
  readonly length: number;
}

/** What a part of a trajectory is: read at its start, sampled, sampled and not trained on, or said by a tool or environment. */
export type PartKind = 'prompt' | 'sampled' | 'masked' | 'tool';

/** One try at a task, as the page shows it. */
export interface DashboardTry {
  /** Its place in the group, counted from 0; −1 for what failed the whole group. */
  readonly index: number;
  /** Absent of one that failed. */
  readonly reward?: number;
  /** Its advantage over the group. Absent of one that failed. */
  readonly advantage?: number;
  /** How many optimizer steps the weights held that it was sampled from. */
  readonly sampledAt?: number;
  /** What went wrong with one that failed. */
  readonly error?: string;
  /** Numbers reported beside the reward, by name. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** What was read and said, in order; `length` is in tokens. */
  readonly parts: readonly {
    /** What the part is. */
    readonly kind: PartKind;
    /** Its text. */
    readonly text: string;
    /** Its length in tokens. */
    readonly length: number;
  }[];
}

/** All tries at one task. */
export interface DashboardGroup {
  /** The run's name. */
  readonly run: string;
  /** The step that it was trained in, or would have been. */
  readonly step: number;
  /** The task's place in the stream of all tasks: a run has one group for it. */
  readonly order: number;
  /** The task's tags. */
  readonly tags: readonly string[];
  /** Why it was not trained on; absent if it was. */
  readonly dropped?: string;
  /** The tries, in order. */
  readonly tries: readonly DashboardTry[];
}

/** An event of the client, without anything that should stay with the client. */
export interface DashboardEvent {
  /** The event's type, as in `TinkerEvent`. */
  readonly type: string;
  /** When it happened, in milliseconds since 1970. */
  readonly atMs: number;
  /** What kind of work it is about. */
  readonly requestType?: string;
  /** The service's id of the request. */
  readonly requestId?: string;
  /** The model or sampling session. */
  readonly target?: string;
  /** Size of the request in bytes. */
  readonly bytes?: number;
  /** State of the service's queue. */
  readonly state?: string;
  /** Why it happened. */
  readonly reason?: string;
  /** The endpoint, or the checkpoint's path. */
  readonly path?: string;
  /** How many attempts have failed. */
  readonly attempt?: number;
  /** How long until the next attempt, in milliseconds. */
  readonly delayMs?: number;
  /** How long sampling pauses, in milliseconds. */
  readonly pauseMs?: number;
  /** How long the pause has lasted, in milliseconds. */
  readonly pausedMs?: number;
  /** How many calls wait. */
  readonly waiting?: number;
  /** How long the request took, in milliseconds. */
  readonly elapsedMs?: number;
  /** Why it failed. */
  readonly error?: {
    /** The error's code. */
    readonly code: string;
    /** The error's message. */
    readonly message: string;
    /** The service's id of the failed request. */
    readonly requestId?: string;
  };
  /** The event as a sentence, and how much it matters. */
  readonly text?: string;
  /** `info`, `warning` or `error`. */
  readonly level?: string;
}

/** A request that the service has and has not answered. */
export interface OpenRequest {
  /** The service's id of the request. */
  readonly requestId: string;
  /** What kind of work it is. */
  readonly requestType: string;
  /** The model or sampling session. */
  readonly target: string;
  /** Its size in bytes. */
  readonly bytes: number;
  /** When it was sent, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** `sent` until the service says how its queue stands. */
  readonly state: string;
  /** Why it waits, if the service reports it. */
  readonly reason?: string;
}

/** Calls of one kind that nothing is known of yet but that they were made. */
export interface Calls {
  /** What kind of work they are; '' for those that only ask. */
  readonly requestType: string;
  /** The model or sampling session they belong to; '' if there is none, or several. */
  readonly target: string;
  /** How many they are. */
  readonly count: number;
  /** When the oldest of them was made. */
  readonly sinceMs: number;
  /** How many of the same model have their turn before the first of them. */
  readonly before: number;
}

/** How much of a budget is taken, and how many wait in line for it. */
export interface BudgetUse {
  /** How much is in use: samples or bytes. */
  readonly inUse: number;
  /** The whole budget, in the same unit. */
  readonly size: number;
  /** How many calls wait for room. */
  readonly waiting: number;
}
/** The budgets of a client. */
export type BudgetName = 'sampleSlots' | 'sampleBytes' | 'trainingBytes' | 'resultBytes';

/** What a client has to do at a moment. */
export interface Load {
  /** When it was read, in milliseconds since 1970. */
  readonly atMs: number;
  /** How many calls have not ended yet. */
  readonly calls: number;
  /** Those that the service has not accepted yet, the oldest first. */
  readonly unsent: readonly Calls[];
  /** Those that it has accepted, and of whose request no event told: it was sent before anybody listened. */
  readonly accepted: readonly Calls[];
  /** Undefined before there is a session. */
  readonly budgets?: Readonly<Record<BudgetName, BudgetUse>>;
}

/** What the named operators of the process do at a moment. */
export interface Flow {
  /** A report of each. */
  readonly reports: readonly FlowReport[];
  /** The `id` of the one that holds up its pipeline; undefined if none does. */
  readonly bottleneck?: number | undefined;
}

/** A time in which something stood still, and why. */
export interface Pause {
  /** What kind of pause it is. */
  readonly kind: 'backoff' | 'sampling' | 'billing';
  /** The path of the call, or the sampling session. */
  readonly what: string;
  /** The work it holds up, if it is one. */
  readonly requestType?: string;
  /** The model or sampling session. */
  readonly target?: string;
  /** The service's id of the request. */
  readonly requestId?: string;
  /** The reason in words. */
  readonly why: string;
  /** When it began, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** When it will end; undefined if unknown. */
  readonly untilMs?: number;
  /** How many attempts have failed. */
  readonly attempt?: number;
}

/** A call that failed. */
export interface Failure {
  /** When it failed, in milliseconds since 1970. */
  readonly atMs: number;
  /** The error's code. */
  readonly code: string;
  /** The error's message. */
  readonly message: string;
  /** What kind of work it was; '' if it was none. */
  readonly what: string;
  /** The model or sampling session. */
  readonly target?: string;
  /** The service's id of the request. */
  readonly requestId?: string;
}

/** A line of the event log. */
export interface Note {
  /** When it was written, in milliseconds since 1970. */
  readonly atMs: number;
  /** `info`, `warning` or `error`. */
  readonly level: string;
  /** The line. */
  readonly text: string;
}

/** `logged`: read from a log, which does not say whether the run continues. */
export type RunStatus = 'running' | 'finished' | 'failed' | 'logged';

/** Numbers by column; null if a row has none. */
export type Columns = Readonly<Record<string, readonly (number | null)[]>>;

/** Rows by column. */
export interface Rows {
  /** The step of each row. */
  readonly index: readonly number[];
  /** Their numbers. */
  readonly columns: Columns;
}

/** The state of all events so far: enough to continue from. */
export interface Standing {
  /** Requests the service has not answered yet. */
  readonly requests: readonly OpenRequest[];
  /** Pauses so far. */
  readonly pauses: readonly Pause[];
  /** Failures so far. */
  readonly failures: readonly Failure[];
  /** The event log so far. */
  readonly notes: readonly Note[];
  /** How many events of each type there were. */
  readonly counts: Readonly<Record<string, number>>;
  /** When each step ended. */
  readonly clock: Rows;
  /** The client's pending work. */
  readonly load?: Load;
}

/** Whatever happens to the state of a dashboard. All of it is plain JSON. */
export type Change =
  | {
      /** A run has a new status. */
      readonly kind: 'run';
      /** The run's name. */
      readonly run: string;
      /** The new status. */
      readonly status: RunStatus;
      /** Why it failed, if it did. */
      readonly message?: string | undefined;
      /** What it was started with: its options by name. */
      readonly config?: unknown;
      /** It starts from nothing: what was known of it is gone. */
      readonly fresh?: boolean;
    }
  | ({
      /** Steps of a run, one or many. */
      readonly kind: 'steps';
      /** The run's name. */
      readonly run: string;
    } & Rows)
  | {
      /** More metrics of a step that was sent before, such as those of an evaluation. */
      readonly kind: 'values';
      /** The run's name. */
      readonly run: string;
      /** The step's number. */
      readonly index: number;
      /** The metrics by name. */
      readonly values: Readonly<Record<string, number>>;
    }
  | {
      /** A checkpoint was saved. */
      readonly kind: 'checkpoint';
      /** The run's name. */
      readonly run: string;
      /** The checkpoint. */
      readonly checkpoint: Checkpoint;
      /** When, in milliseconds since 1970. */
      readonly atMs?: number | undefined;
    }
  | {
      /** A new sample. */
      readonly kind: 'sample';
      /** The sample. */
      readonly sample: DashboardSample;
    }
  | {
      /** Many samples at once, as they are sent to a page that comes late: they are counted in what is standing. */
      readonly kind: 'samples';
      /** The samples. */
      readonly samples: readonly DashboardSample[];
    }
  | {
      /** A group of rollouts; it replaces the one of the same task and run. */
      readonly kind: 'group';
      /** The group. */
      readonly group: DashboardGroup;
    }
  | {
      /** An event of the client. */
      readonly kind: 'event';
      /** The event. */
      readonly event: DashboardEvent;
    }
  | {
      /** The client's pending work has changed. */
      readonly kind: 'load';
      /** The pending work. */
      readonly load: Load;
    }
  | {
      /** What the named operators do has changed. */
      readonly kind: 'flow';
      /** What they do. */
      readonly flow: Flow;
    }
  | {
      /** Everything that events have told so far. */
      readonly kind: 'standing';
      /** The state. */
      readonly standing: Standing;
    };

/** What a dashboard server sends. */
export type DashboardMessage =
  | {
      /** Forget everything: what follows is the whole state. */
      readonly type: 'reset';
      /** The server's clock, in milliseconds since 1970. */
      readonly nowMs: number;
      /** The page's title. */
      readonly title: string;
    }
  | {
      /** What has changed. */
      readonly type: 'changes';
      /** The server's clock, in milliseconds since 1970. */
      readonly nowMs: number;
      /** The changes, in order. */
      readonly changes: readonly Change[];
    };
