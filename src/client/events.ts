import { Subject, type Observable } from 'rxjs';
import type { QueueState } from '../wire/futures.js';
import type { FinishStatus } from '../wire/session.js';
import type { TinkerError } from '../wire/tinkerError.js';

/** What kind of work an event is about, as the service names it. */
export type RequestType =
  | 'CreateModel'
  | 'Forward'
  | 'ForwardBackward'
  | 'OptimStep'
  | 'SaveWeights'
  | 'SaveWeightsForSampler'
  | 'SaveWeightsExternal'
  | 'LoadWeights'
  | 'CreateCustomLoss'
  | 'Sample';

/** What every event carries: when it happened, by the machine's clock or the scheduler that the client was given. */
interface At {
  readonly atMs: number;
}
/** What kind of work it is, and for which model or sampling session. */
export interface WorkKind {
  readonly requestType: RequestType;
  readonly target: string;
}
/** The same for work that the service has accepted. */
interface AcceptedKind extends WorkKind {
  readonly requestId: string;
}

export type TinkerEvent = At &
  (
    | { readonly type: 'session-created'; readonly sessionId: string }
    | { readonly type: 'session-message'; readonly level: 'info' | 'warning' | 'error'; readonly message: string }
    | {
        readonly type: 'session-finished';
        readonly sessionId: string;
        readonly status: FinishStatus | 'ended-by-server';
      }
    /** The service could not be told that the session has ended. */
    | { readonly type: 'session-unfinished'; readonly sessionId: string; readonly reason: string }
    | {
        readonly type: 'heartbeat-missed';
        readonly sessionId: string;
        readonly silentMs: number;
        readonly reason: string;
      }
    /** Nothing ran in this process for so long: something blocked the event loop, or the machine slept. */
    | { readonly type: 'loop-blocked'; readonly sessionId: string; readonly blockedMs: number }
    | { readonly type: 'config-changed'; readonly what: string }
    | { readonly type: 'protocol-chosen'; readonly format: 'protobuf' | 'json'; readonly reason: string }
    | { readonly type: 'deprecation-noted'; readonly level: string; readonly note: string; readonly path: string }
    /** Work was handed to the service and has a promise. */
    | ({
        readonly type: 'request-sent';
        readonly bytes: number;
        /** The number of the turn or of the sample; beyond 2⁵³, where a clone's may lie, it is rounded. */
        readonly seqId: number | undefined;
      } & AcceptedKind)
    /** A request failed temporarily and is sent again after the delay. */
    | ({
        readonly type: 'request-retry';
        readonly path: string;
        /** How many tries have failed so far. */
        readonly attempt: number;
        readonly delayMs: number;
        readonly error: TinkerError;
      } & Partial<AcceptedKind>)
    /** The state of the service's queue, and why the work waits. */
    | ({
        readonly type: 'queue-state';
        readonly state: QueueState;
        readonly reason: string | undefined;
        readonly waitedMs: number;
      } & AcceptedKind)
    | ({ readonly type: 'request-finished'; readonly elapsedMs: number } & AcceptedKind)
    | ({
        readonly type: 'request-failed';
        readonly elapsedMs: number;
        readonly error: TinkerError;
      } & Partial<AcceptedKind>)
    /** A call failed, and nobody has awaited its future or subscribed to it. */
    | ({ readonly type: 'failure-unread'; readonly error: TinkerError } & Partial<AcceptedKind>)
    /** Once a minute while there is work: how much of it waits to be accepted by the service, runs there, or has ended. */
    | {
        readonly type: 'work-progress';
        /** Calls that the service has not accepted yet: they wait for their turn, for room, or for an answer. */
        readonly waiting: number;
        /** Calls that the service has accepted and not finished. */
        readonly running: number;
        /** Calls that have ended since the last such event, well or not. */
        readonly ended: number;
        /** How long ago the last one ended. */
        readonly quietMs: number;
      }
    /** Training work that was sent already still runs and is billed; a sample is cancelled where the service can. */
    | ({ readonly type: 'request-abandoned'; readonly cancelled: boolean } & AcceptedKind)
    | {
        readonly type: 'sample-resubmitted';
        readonly target: string;
        readonly attempt: number;
        readonly delayMs: number;
        readonly error: TinkerError;
      }
    /** The server does not know an option and sampled without it. */
    | { readonly type: 'option-ignored'; readonly target: string; readonly option: string }
    /** The service does not run a custom loss it was given: it is evaluated here instead, between two passes. */
    | { readonly type: 'loss-runs-here'; readonly target: string; readonly reason: string }
    /** Too much sampling at once: no new samples go out until the pause is over. */
    | { readonly type: 'dispatch-paused'; readonly pauseMs: number; readonly waiting: number }
    | { readonly type: 'billing-paused'; readonly pausedMs: number; readonly message: string }
    /** A result has arrived, and with it what is billed by tokens. */
    | ({
        readonly type: 'tokens-used';
        /** Of the prompt of a sample, cached ones included. */
        readonly prompt: number;
        /** Of these, the ones that the service had cached. */
        readonly cached: number;
        /** Sampled, of all samples together. */
        readonly sampled: number;
        /** Of a forward or backward pass. */
        readonly trained: number;
      } & WorkKind)
    | {
        readonly type: 'step-end';
        readonly target: string;
        readonly seqId: number;
        readonly metrics: Readonly<Record<string, number>>;
      }
    | { readonly type: 'checkpoint-saved'; readonly target: string; readonly path: string; readonly seqId: number }
    | { readonly type: 'telemetry-dropped'; readonly events: number; readonly reason: string }
  );
export type TinkerEventType = TinkerEvent['type'];
type WithoutTime<E> = E extends unknown ? Omit<E, 'atMs'> : never;

/** Where the client emits its events. A subscriber that throws affects neither the client nor other subscribers. */
export class EventBus {
  readonly #events = new Subject<TinkerEvent>();
  readonly events$: Observable<TinkerEvent> = this.#events.asObservable();

  /** Durations are measured by `now`; events are stamped with the time of day. */
  constructor(
    readonly now: () => number,
    readonly timeOfDay: () => number = now,
  ) {}

  /** Whether anybody listens: an event that takes time to make is made only then. */
  get observed(): boolean {
    return this.#events.observed;
  }

  /** Takes over the event: it is stamped and emitted as it is, since copying each one is slow. */
  emit(event: WithoutTime<TinkerEvent> & { atMs?: number }): void {
    if (!this.#events.observed) return;
    event.atMs = this.timeOfDay();
    this.#events.next(event as TinkerEvent);
  }

  complete(): void {
    this.#events.complete();
  }
}
