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
  readonly logprobs?: readonly (number | null)[];
  readonly stopReason?: string;
  readonly reward?: number;
  /** How many tokens it has; more than are shown where it is very long. */
  readonly length: number;
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

/** A time in which something stood still, and why. */
export interface Pause {
  readonly kind: 'backoff' | 'sampling' | 'billing';
  readonly what: string;
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
  readonly what: string;
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

/** Numbers as base64 of their bytes, little end first: a long column need not be written out in digits. NaN is none. */
export type PackedColumn = { readonly f32: string } | { readonly f64: string };

/** What folded events come to: enough to go on folding from. */
export interface Standing {
  readonly requests: readonly OpenRequest[];
  readonly pauses: readonly Pause[];
  readonly failures: readonly Failure[];
  readonly notes: readonly Note[];
  readonly counts: Readonly<Record<string, number>>;
  readonly clock: { readonly index: readonly number[]; readonly columns: Columns };
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
  | {
      readonly kind: 'rows';
      readonly run: string;
      readonly index: readonly number[];
      readonly columns: Readonly<Record<string, PackedColumn>>;
    }
  /** Values for a step that is there already, such as those of an evaluation. */
  | {
      readonly kind: 'values';
      readonly run: string;
      readonly index: number;
      readonly values: Readonly<Record<string, number>>;
    }
  | { readonly kind: 'checkpoint'; readonly run: string; readonly checkpoint: Checkpoint; readonly atMs?: number }
  | { readonly kind: 'sample'; readonly sample: DashboardSample }
  | { readonly kind: 'event'; readonly event: DashboardEvent }
  | { readonly kind: 'standing'; readonly standing: Standing };

/** What a dashboard server sends. */
export type DashboardMessage =
  /** Forget everything: what follows is all there is. */
  | { readonly type: 'reset'; readonly nowMs: number; readonly title: string; readonly budgetBytes: number }
  | { readonly type: 'changes'; readonly nowMs: number; readonly changes: readonly Change[] };
