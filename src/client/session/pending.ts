import type { RequestType } from '../events.js';

/** A pending call. */
export interface PendingCall {
  /** What kind of work it is; undefined for calls that only ask, such as `getInfo`. */
  readonly requestType: RequestType | undefined;
  /** The model or sampling session it belongs to. */
  readonly target: string | undefined;
  /** When it was made, by the client's scheduler. */
  readonly sinceMs: number;
  /** The service's id of the work; undefined until the service has accepted it. */
  readonly requestId: string | undefined;
}

/** How much of a budget is taken, and how many wait in line for it. */
export interface BudgetUse {
  /** How much of the budget is in use, in its own unit: samples or bytes. */
  readonly inUse: number;
  /** The whole budget, in the same unit. */
  readonly size: number;
  /** How many calls wait for room in it. */
  readonly waiting: number;
}

/** The pending work of a client. */
export interface PendingWork {
  /** The pending calls, the oldest first. */
  readonly calls: Iterable<PendingCall>;
  /** The budgets that the calls share; undefined before there is a session. */
  readonly budgets:
    | {
        /** Submissions of samples at once, and the bytes of their prompts. */
        readonly sampleSlots: BudgetUse;
        /** Bytes of sample requests in flight. */
        readonly sampleBytes: BudgetUse;
        /** Bytes of training data being sent. */
        readonly trainingBytes: BudgetUse;
        /** Bytes of results being fetched. */
        readonly resultBytes: BudgetUse;
      }
    | undefined;
}
