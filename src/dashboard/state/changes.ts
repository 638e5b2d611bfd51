import type { Checkpoint } from '../../operators/trainingBatch.js';

/** A sample as the page shows it: text in pieces, each with its token and how likely it was. */
export interface DashboardSample {
  /** Counted from 0 in the order of arrival. */
  readonly id: number;
  readonly atMs: number;
  readonly run?: string;
  readonly prompt: string;
  /** A piece is what one token says; where a character takes several tokens, what they say together. */
  readonly pieces: readonly string[];
  /** The tokens of each piece. */
  readonly tokens: readonly (number | readonly number[])[];
  /** The log-probability of each piece. */
  readonly logprobs?: readonly (number | null)[] | undefined;
  readonly stopReason?: string;
  readonly reward?: number;
  /** How many tokens it has; more than are shown where it is very long. */
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
  readonly advantage?: number;
  /** How many optimizer steps the weights held that it was sampled from. */
  readonly sampledAt?: number;
  /** What went wrong with one that failed. */
  readonly error?: string;
  readonly metrics?: Readonly<Record<string, number>>;
  /** What was read and said, in order; `length` is in tokens. */
  readonly parts: readonly { readonly kind: PartKind; readonly text: string; readonly length: number }[];
}

/** All tries at one task. */
export interface DashboardGroup {
  readonly run: string;
  /** The step that it was trained in, or would have been. */
  readonly step: number;
  /** The task's place in the stream of all tasks: a run has one group for it. */
  readonly order: number;
  readonly tags: readonly string[];
  /** Why it was not trained on; absent where it was. */
  readonly dropped?: string;
  readonly tries: readonly DashboardTry[];
}

/** An event of the client, without anything that should stay with the client. */
export interface DashboardEvent {
  readonly type: string;
  readonly atMs: number;
  readonly requestType?: string;
  readonly requestId?: string;
  readonly target?: string;
  readonly bytes?: number;
  readonly state?: string;
  readonly reason?: string;
  readonly path?: string;
  readonly attempt?: number;
  readonly delayMs?: number;
  readonly pauseMs?: number;
  readonly pausedMs?: number;
  readonly waiting?: number;
  readonly elapsedMs?: number;
  readonly error?: { readonly code: string; readonly message: string; readonly requestId?: string };
  /** The event as a sentence, and how much it matters. */
  readonly text?: string;
  readonly level?: string;
}

/** A request that the service has and has not answered. */
export interface OpenRequest {
  readonly requestId: string;
  readonly requestType: string;
  readonly target: string;
  readonly bytes: number;
  readonly sinceMs: number;
  /** `sent` until the service says how its queue stands. */
  readonly state: string;
  readonly reason?: string;
}

/** Calls of one kind that nothing is known of yet but that they were made. */
export interface Calls {
  /** What kind of work they are; '' for those that only ask. */
  readonly requestType: string;
  /** The model or sampling session they belong to; '' where there is none, or several. */
  readonly target: string;
  readonly count: number;
  /** When the oldest of them was made. */
  readonly sinceMs: number;
  /** How many of the same model have their turn before the first of them. */
  readonly before: number;
}

/** How much of a budget is taken, and how many wait in line for it. */
export interface BudgetUse {
  readonly inUse: number;
  readonly size: number;
  readonly waiting: number;
}
export type BudgetName = 'sampleSlots' | 'sampleBytes' | 'trainingBytes' | 'resultBytes';

/** What a client has to do at a moment. */
export interface Load {
  readonly atMs: number;
  /** How many calls have not come to their end. */
  readonly calls: number;
  /** Those that the service has not accepted yet, the oldest first. */
  readonly unsent: readonly Calls[];
  /** Those that it has accepted, and of whose request no event told: it was sent before anybody listened. */
  readonly accepted: readonly Calls[];
  /** Undefined before there is a session. */
  readonly budgets?: Readonly<Record<BudgetName, BudgetUse>>;
}

/** A time in which something stood still, and why. */
export interface Pause {
  readonly kind: 'backoff' | 'sampling' | 'billing';
  /** The path of the call, or the sampling session. */
  readonly what: string;
  /** The work it holds up, where it is one. */
  readonly requestType?: string;
  readonly target?: string;
  readonly requestId?: string;
  readonly why: string;
  readonly sinceMs: number;
  /** When it is over; undefined where nobody can tell. */
  readonly untilMs?: number;
  readonly attempt?: number;
}

export interface Failure {
  readonly atMs: number;
  readonly code: string;
  readonly message: string;
  /** What kind of work it was; '' where it was none. */
  readonly what: string;
  readonly target?: string;
  readonly requestId?: string;
}

export interface Note {
  readonly atMs: number;
  readonly level: string;
  readonly text: string;
}

/** `logged`: read from a log, which does not say whether the run goes on. */
export type RunStatus = 'running' | 'finished' | 'failed' | 'logged';

/** Numbers by column; null where a row has none. */
export type Columns = Readonly<Record<string, readonly (number | null)[]>>;

/**
 * Numbers as base64 of their bytes, little end first: a long column need not be written out in digits. `all` are the
 * same number; of whole ones what they are above `from`, plus one, is kept; all are to be divided by `per`.
 */
export interface PackedColumn {
  readonly as: 'all' | 'u8' | 'u16' | 'u32' | 'f32' | 'f64';
  readonly data?: string;
  readonly from?: number;
  readonly per?: number;
}

/** Many rows, by column; a column without a number in them is left out. */
export interface PackedRows {
  readonly size: number;
  readonly index: PackedColumn;
  readonly columns: Readonly<Record<string, PackedColumn>>;
}

/** A sample without its tokens: its text is whole. */
export interface SampleFacts extends Omit<DashboardSample, 'pieces' | 'tokens' | 'logprobs'> {
  readonly text: string;
  /** How many pieces the text has, and whether they have logprobs. */
  readonly size: number;
  readonly likely?: boolean;
}

/** Many samples, with what there is a number of for each piece in columns over all of them. */
export interface PackedSamples {
  readonly facts: readonly SampleFacts[];
  /** How long each piece is. */
  readonly cuts: PackedColumn;
  readonly tokens: PackedColumn;
  /** How many tokens each piece has, where it is not always one. */
  readonly counts?: PackedColumn;
  readonly logprobs?: PackedColumn;
}

/** What folded events come to: enough to go on folding from. */
export interface Standing {
  readonly requests: readonly OpenRequest[];
  readonly pauses: readonly Pause[];
  readonly failures: readonly Failure[];
  readonly notes: readonly Note[];
  readonly counts: Readonly<Record<string, number>>;
  readonly clock: PackedRows;
  readonly load?: Load;
}

/** Whatever happens to the state of a dashboard. All of it is plain JSON. */
export type Change =
  | {
      readonly kind: 'run';
      readonly run: string;
      readonly status: RunStatus;
      readonly message?: string;
      /** It starts from nothing: what was known of it is gone. */
      readonly fresh?: boolean;
    }
  | { readonly kind: 'steps'; readonly run: string; readonly index: readonly number[]; readonly columns: Columns }
  /** Many steps at once, as they are sent to a page that comes late. */
  | ({ readonly kind: 'rows'; readonly run: string } & PackedRows)
  /** Values for a step that is there already, such as those of an evaluation. */
  | {
      readonly kind: 'values';
      readonly run: string;
      readonly index: number;
      readonly values: Readonly<Record<string, number>>;
    }
  | { readonly kind: 'checkpoint'; readonly run: string; readonly checkpoint: Checkpoint; readonly atMs?: number }
  | { readonly kind: 'sample'; readonly sample: DashboardSample }
  /** Many samples at once, as they are sent to a page that comes late: they are counted in what is standing. */
  | { readonly kind: 'samples'; readonly samples: PackedSamples }
  /** A group of rollouts; the same task of the same run takes its place. */
  | { readonly kind: 'group'; readonly group: DashboardGroup }
  | { readonly kind: 'event'; readonly event: DashboardEvent }
  | { readonly kind: 'load'; readonly load: Load }
  | { readonly kind: 'standing'; readonly standing: Standing };

/** What a dashboard server sends. */
export type DashboardMessage =
  /** Forget everything: what follows is all there is. */
  | { readonly type: 'reset'; readonly nowMs: number; readonly title: string }
  | { readonly type: 'changes'; readonly nowMs: number; readonly changes: readonly Change[] };
