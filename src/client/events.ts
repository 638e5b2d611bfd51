import { Subject, type Observable, type SchedulerLike } from 'rxjs';
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

/** What every event carries. */
interface At {
  /** When it happened, in milliseconds since 1970, by the machine's clock or the scheduler that the client was given. */
  readonly atMs: number;
}
/** What kind of work it is, and for which model or sampling session. */
export interface WorkKind {
  /** What kind of work it is. */
  readonly requestType: RequestType;
  /** The model or sampling session it is for. */
  readonly target: string;
}
/** The same for work that the service has accepted. */
interface AcceptedKind extends WorkKind {
  /** The service's id of the request. */
  readonly requestId: string;
}

/** What a client reports while it works. `type` tells the events apart. */
export type TinkerEvent = At &
  (
    | {
        /** The session is open. */
        readonly type: 'session-created';
        /** Its id. */
        readonly sessionId: string;
      }
    | {
        /** The service sent a message for you. */
        readonly type: 'session-message';
        /** How much it matters. */
        readonly level: 'info' | 'warning' | 'error';
        /** The message. */
        readonly message: string;
      }
    | {
        /** The session has ended. */
        readonly type: 'session-finished';
        /** Its id. */
        readonly sessionId: string;
        /** How it ended. */
        readonly status: FinishStatus | 'ended-by-server';
      }
    | {
        /** The service could not be told that the session has ended. */
        readonly type: 'session-unfinished';
        /** Its id. */
        readonly sessionId: string;
        /** Why not. */
        readonly reason: string;
      }
    | {
        /** The service has not answered a heartbeat for two minutes. */
        readonly type: 'heartbeat-missed';
        /** The session's id. */
        readonly sessionId: string;
        /** How long ago the last heartbeat was answered, in milliseconds. */
        readonly silentMs: number;
        /** Why the last one failed. */
        readonly reason: string;
      }
    | {
        /** Nothing ran in this process for a while: something blocked the event loop, or the machine slept. */
        readonly type: 'loop-blocked';
        /** The session's id. */
        readonly sessionId: string;
        /** For how long, in milliseconds. */
        readonly blockedMs: number;
      }
    | {
        /** The service changed its flags. */
        readonly type: 'config-changed';
        /** Which ones, in words. */
        readonly what: string;
      }
    | {
        /** How passes are sent to this service. */
        readonly type: 'protocol-chosen';
        /** The format. */
        readonly format: 'protobuf' | 'json';
        /** Why this one. */
        readonly reason: string;
      }
    | {
        /** The service marks something you use as deprecated. */
        readonly type: 'deprecation-noted';
        /** How much it matters, as the service reports it. */
        readonly level: string;
        /** The service's note. */
        readonly note: string;
        /** The endpoint it is about. */
        readonly path: string;
      }
    | ({
        /** The service accepted a request and returned a result handle for it. */
        readonly type: 'request-sent';
        /** The request's size in bytes. */
        readonly bytes: number;
        /** The number of the turn or of the sample; beyond 2⁵³, where a clone's may lie, it is rounded. */
        readonly seqId: number | undefined;
      } & AcceptedKind)
    | ({
        /** A request failed temporarily and is sent again after the delay. */
        readonly type: 'request-retry';
        /** The endpoint. */
        readonly path: string;
        /** How many attempts have failed so far. */
        readonly attempt: number;
        /** How long until the next attempt, in milliseconds. */
        readonly delayMs: number;
        /** Why the last attempt failed. */
        readonly error: TinkerError;
      } & Partial<AcceptedKind>)
    | ({
        /** The service reported the state of its queue. */
        readonly type: 'queue-state';
        /** The state. */
        readonly state: QueueState;
        /** Why the work waits, if the service reports it. */
        readonly reason: string | undefined;
        /** How long the result has been awaited, in milliseconds. */
        readonly waitedMs: number;
      } & AcceptedKind)
    | ({
        /** A request's result has arrived. */
        readonly type: 'request-finished';
        /** How long it took since it was sent, in milliseconds. */
        readonly elapsedMs: number;
      } & AcceptedKind)
    | ({
        /** A request failed for good. */
        readonly type: 'request-failed';
        /** How long it took since it was sent, in milliseconds. */
        readonly elapsedMs: number;
        /** Why it failed. */
        readonly error: TinkerError;
      } & Partial<AcceptedKind>)
    | ({
        /** A call failed, and nobody has awaited its future or subscribed to it. */
        readonly type: 'failure-unread';
        /** Why it failed. */
        readonly error: TinkerError;
      } & Partial<AcceptedKind>)
    | {
        /** Once a minute while there is work: how much is waiting, running at the service, and done. */
        readonly type: 'work-progress';
        /** Calls that the service has not accepted yet: they wait for their turn, for room, or for an answer. */
        readonly waiting: number;
        /** Calls that the service has accepted and not finished. */
        readonly running: number;
        /** Calls that have ended since the last such event, successfully or not. */
        readonly ended: number;
        /** How long ago the last call ended, in milliseconds. */
        readonly quietMs: number;
      }
    | ({
        /** A call was given up. Training work that was sent still runs and is billed; a sample is cancelled if supported. */
        readonly type: 'request-abandoned';
        /** Whether the service was asked to cancel it. */
        readonly cancelled: boolean;
      } & AcceptedKind)
    | {
        /** A sample failed temporarily and is submitted again as a new request. */
        readonly type: 'sample-resubmitted';
        /** The sampling session. */
        readonly target: string;
        /** How many attempts have failed so far. */
        readonly attempt: number;
        /** How long until the next attempt, in milliseconds. */
        readonly delayMs: number;
        /** Why the last attempt failed. */
        readonly error: TinkerError;
      }
    | ({
        /** A result has arrived, and with it the number of tokens that are billed. */
        readonly type: 'tokens-used';
        /** Tokens of a sample's prompt, cached ones included. */
        readonly prompt: number;
        /** Of these, the tokens that the service had cached. */
        readonly cached: number;
        /** Sampled tokens, of all samples together. */
        readonly sampled: number;
        /** Tokens of a forward or backward pass. */
        readonly trained: number;
      } & WorkKind)
    | {
        /** The server does not know an option and sampled without it. */
        readonly type: 'option-ignored';
        /** The sampling session. */
        readonly target: string;
        /** The option. */
        readonly option: string;
      }
    | {
        /** The service does not run a custom loss: it is evaluated in this process instead, between two passes. */
        readonly type: 'loss-runs-here';
        /** The model. */
        readonly target: string;
        /** Why the service does not run it. */
        readonly reason: string;
      }
    | {
        /** The service is rate-limiting: no new samples are sent until the pause is over. */
        readonly type: 'dispatch-paused';
        /** How long the pause is, in milliseconds. */
        readonly pauseMs: number;
        /** How many samples wait. */
        readonly waiting: number;
      }
    | {
        /** The account cannot pay: work is paused and continues once it can. */
        readonly type: 'billing-paused';
        /** How long the pause has lasted, in milliseconds. */
        readonly pausedMs: number;
        /** What the service says about it. */
        readonly message: string;
      }
    | {
        /** An optimizer step has ended. */
        readonly type: 'step-end';
        /** The model. */
        readonly target: string;
        /** The step's sequence number. */
        readonly seqId: number;
        /** What the service reports about the step, by name. */
        readonly metrics: Readonly<Record<string, number>>;
      }
    | {
        /** A checkpoint was saved. */
        readonly type: 'checkpoint-saved';
        /** The model. */
        readonly target: string;
        /** Its `tinker://` path. */
        readonly path: string;
        /** The sequence number of the call that saved it. */
        readonly seqId: number;
      }
    | {
        /** Telemetry could not be delivered and was dropped. Your work is not affected. */
        readonly type: 'telemetry-dropped';
        /** How many events were dropped. */
        readonly events: number;
        /** Why. */
        readonly reason: string;
      }
  );
/** The types of {@link TinkerEvent}. */
export type TinkerEventType = TinkerEvent['type'];
type WithoutTime<E> = E extends unknown ? Omit<E, 'atMs'> : never;

/** Where the client emits its events. A subscriber that throws affects neither the client nor other subscribers. */
export class EventBus {
  /**
   * For programs. What is told of every single request is made only while this is `observed`: three events for each sample took a tenth of
   * its CPU.
   */
  readonly all = new Subject<TinkerEvent>();
  /** The same for the log and for telemetry, without what is told of every request. */
  readonly notable = new Subject<TinkerEvent>();

  /** Durations are measured by the scheduler; events are stamped with the time of day. */
  constructor(
    readonly scheduler: Pick<SchedulerLike, 'now'>,
    readonly timeOfDay: Pick<SchedulerLike, 'now'> = scheduler,
  ) {}

  get events$(): Observable<TinkerEvent> {
    return this.all.asObservable();
  }

  /** Takes over the event: it is stamped and emitted as it is, since copying each one is slow. */
  emit(event: WithoutTime<TinkerEvent> & { atMs?: number }): void {
    if (!this.all.observed && !this.notable.observed) return;
    event.atMs = this.timeOfDay.now();
    this.all.next(event as TinkerEvent);
    this.notable.next(event as TinkerEvent);
  }

  complete(): void {
    this.all.complete();
    this.notable.complete();
  }
}
