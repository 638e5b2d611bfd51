import {
  BehaviorSubject,
  EMPTY,
  ReplaySubject,
  Subject,
  catchError,
  concatMap,
  defer,
  ignoreElements,
  interval,
  map,
  merge,
  of,
  repeat,
  switchMap,
  takeUntil,
  tap,
  throwError,
  timeout,
  timer,
  type Observable,
} from 'rxjs';
import {
  CreateSessionRequest,
  CreateSessionResponse,
  type DynamicConfig,
  type FinishStatus,
  FinishSessionRequest,
  SessionHeartbeatRequest,
} from '../../wire/session.js';
import { mergeMapWeighted } from '../../operators/flow/mergeMapWeighted.js';
import { once } from '../../transport/once.js';
import { longTimer } from '../../support/longTimer.js';
import { decodeJson } from '../connection/answer.js';
import type { Connection } from '../connection/Connection.js';
import { SharedBudget } from '../connection/SharedBudget.js';
import { APITimeoutError, GoneError, NotFoundError, type TinkerError } from '../errors.js';
import { segments } from '../rest/restQuery.js';
import { SampleDispatcher } from '../sampling/SampleDispatcher.js';
import { blockedTimes } from './blockedTimes.js';
import type { PendingWork } from './pending.js';
import { CustomLosses } from '../training/customLoss.js';
import { WireFormat } from '../training/WireFormat.js';

export interface SessionOptions {
  readonly tags: readonly string[];
  readonly userMetadata: Readonly<Record<string, string>>;
  readonly projectId: string | undefined;
  readonly displayName: string | undefined;
}

const HEARTBEAT_MS = 10_000;
const HEARTBEAT_TIMEOUT_MS = 10_000;
const SILENCE_MS = 120_000;
const SHORTEST_REFRESH_MS = 10_000;
const FINISH_TIMEOUT_MS = 15_000;
const CANCELS_TIMEOUT_MS = 5000;

/** The session of a service client, opened when something first needs it: listing checkpoints opens none. */
export class Session {
  readonly #stop = new Subject<void>();
  readonly #finishing = new Subject<void>();
  readonly #cancels = new Subject<string>();
  readonly #cancelled = new ReplaySubject<never>();
  readonly #open: Observable<OpenSession>;
  #opened: OpenSession | undefined;

  constructor(
    readonly connection: Connection,
    readonly options: SessionOptions,
  ) {
    // Shared work may outlive the calls that wait for it, but not the client.
    this.#open = once(this.#create().pipe(takeUntil(this.#stop)));
  }

  /** The open session. Opens it if necessary. */
  open(): Observable<OpenSession> {
    return this.#opened === undefined ? this.#open : of(this.#opened);
  }

  /** The session's id, once it is open. */
  get id(): string | undefined {
    return this.#opened?.id;
  }

  /** What its clients share, and how much of it is taken; undefined before it is open. */
  get budgets(): PendingWork['budgets'] {
    if (this.#opened === undefined) return undefined;
    const { dispatcher, trainingBytes, responseBytes, connection } = this.#opened;
    const { fwdbwdDispatchBytesSemaphoreSize, inflightResponseBytesSemaphoreSize } = connection.config;
    return {
      ...dispatcher.use,
      trainingBytes: trainingBytes.use(fwdbwdDispatchBytesSemaphoreSize),
      resultBytes: responseBytes.use(inflightResponseBytesSemaphoreSize),
    };
  }

  /** Tells the service how the session ended. The first call counts; servers without this endpoint answer 404. */
  finish(status: FinishStatus, detail: string | undefined): Observable<never> {
    const opened = this.#opened;
    if (opened === undefined) return EMPTY;
    const { id: sessionId } = opened;
    const { events, scheduler } = this.connection;
    const json = FinishSessionRequest.encode({ reason: { type: status }, ...(detail === undefined ? {} : { detail }) });
    const late = new APITimeoutError(`no answer within ${FINISH_TIMEOUT_MS / 1000} s`);
    return defer(() => {
      // A finished session refuses heartbeats, which would look as if the service had ended it.
      this.#finishing.next();
      return this.connection.send({
        path: `sessions/${segments(sessionId, 'sessionId')}/finish`,
        lane: 'session',
        json,
      });
    }).pipe(
      timeout({ each: FINISH_TIMEOUT_MS, scheduler, with: () => throwError(() => late) }),
      catchError((error: TinkerError) => {
        if (error instanceof NotFoundError || error instanceof GoneError) return EMPTY;
        events.emit({ type: 'session-unfinished', sessionId, reason: error.message });
        throw error;
      }),
      tap({ complete: () => events.emit({ type: 'session-finished', sessionId, status }) }),
      ignoreElements(),
    );
  }

  /** Accepts no more cancellations. Completes when all pending ones are sent, or after five seconds. */
  endCancels(): Observable<never> {
    return defer(() => {
      this.#cancels.complete();
      return this.#opened === undefined ? EMPTY : this.#cancelled;
    }).pipe(takeUntil(timer(CANCELS_TIMEOUT_MS, this.connection.scheduler)));
  }

  /** Ends heartbeats and everything else that runs in the background. */
  stop(): void {
    this.#stop.next();
    this.#stop.complete();
  }

  #create(): Observable<OpenSession> {
    const { connection, options } = this;
    return connection.ready().pipe(
      concatMap(() => connection.fetchDynamicConfig(true)),
      concatMap((dynamicConfig) => {
        const json = CreateSessionRequest.encode({
          tags: [...options.tags],
          userMetadata: options.userMetadata,
          sdkVersion: connection.sdkVersion,
          ...(options.projectId === undefined ? {} : { projectId: options.projectId }),
          ...(options.displayName === undefined ? {} : { displayName: options.displayName }),
          type: 'create_session',
        });
        return connection.send({ path: 'create_session', lane: 'session', json }).pipe(
          decodeJson(CreateSessionResponse, 'create_session'),
          map(({ sessionId, infoMessage, warningMessage, errorMessage }) => {
            const { events } = connection;
            events.emit({ type: 'session-created', sessionId });
            const say = (level: 'info' | 'warning' | 'error', said: string | undefined): void => {
              if (said) events.emit({ type: 'session-message', level, message: connection.secrets.clean(said) });
            };
            say('info', infoMessage);
            say('warning', warningMessage);
            say('error', errorMessage);
            const opened = openSession(connection, sessionId, dynamicConfig, (requestId) =>
              this.#cancels.next(requestId),
            );
            this.#opened = opened;
            this.#runBeside(opened);
            return opened;
          }),
        );
      }),
    );
  }

  #runBeside(opened: OpenSession): void {
    const { connection } = this;
    this.#heartbeat(opened.id)
      .pipe(takeUntil(merge(this.#stop, this.#finishing)))
      .subscribe();
    blockedTimes(connection.background, connection.timeOfDay)
      .pipe(takeUntil(this.#stop))
      .subscribe((blockedMs) => connection.events.emit({ type: 'loop-blocked', sessionId: opened.id, blockedMs }));
    this.#refreshConfig(opened).pipe(takeUntil(this.#stop)).subscribe();
    cancelOnServer(opened, this.#cancels).pipe(takeUntil(this.#stop)).subscribe(this.#cancelled);
  }

  #heartbeat(sessionId: string): Observable<never> {
    const { connection } = this;
    return defer(() => {
      let lastMs = connection.scheduler.now();
      let reason = 'no answer came';
      const ended = new Subject<void>();
      const beat = (): Observable<unknown> =>
        connection
          .attempt(
            {
              path: 'session_heartbeat',
              lane: 'session',
              json: SessionHeartbeatRequest.encode({ sessionId, type: 'session_heartbeat' }),
              timeoutMs: HEARTBEAT_TIMEOUT_MS,
            },
            connection.uuid(),
          )
          .pipe(
            tap(() => (lastMs = connection.scheduler.now())),
            catchError((error: TinkerError) => {
              reason = error.message;
              if (error instanceof GoneError) {
                connection.events.emit({ type: 'session-finished', sessionId, status: 'ended-by-server' });
                ended.next();
              }
              return EMPTY;
            }),
          );
      // By the clock, and without waiting for the previous one: a heartbeat that hangs would otherwise stop all others.
      return interval(HEARTBEAT_MS, connection.background).pipe(
        tap(() => {
          const silentMs = connection.scheduler.now() - lastMs;
          if (silentMs > SILENCE_MS) connection.events.emit({ type: 'heartbeat-missed', sessionId, silentMs, reason });
        }),
        switchMap(beat),
        takeUntil(ended),
        ignoreElements(),
      );
    });
  }

  #refreshConfig(opened: OpenSession): Observable<never> {
    const { connection } = this;
    const { dynamicConfig } = opened;
    return defer(() => longTimer(refreshAfterMs(dynamicConfig.value), connection.background)).pipe(
      concatMap(() => connection.fetchDynamicConfig(false)),
      tap((fresh) => {
        if (JSON.stringify(fresh) !== JSON.stringify(dynamicConfig.value))
          connection.events.emit({ type: 'config-changed', what: JSON.stringify(fresh) });
        dynamicConfig.next(fresh);
      }),
      // A failed refresh keeps the last values.
      catchError(() => EMPTY),
      ignoreElements(),
      repeat(),
    );
  }
}

const refreshAfterMs = ({ refreshIntervalSec }: DynamicConfig): number =>
  Math.max(refreshIntervalSec * 1000, SHORTEST_REFRESH_MS);

/** What the clients of one open session share. */
export interface OpenSession {
  readonly id: string;
  readonly connection: Connection;
  readonly dispatcher: SampleDispatcher;
  /** Bytes of forward-backward requests being sent. */
  readonly trainingBytes: SharedBudget;
  /** Bytes of results being fetched. */
  readonly responseBytes: SharedBudget;
  readonly wireFormat: WireFormat;
  /** The losses that were uploaded. */
  readonly losses: CustomLosses;
  /** Flags that change while the client runs. */
  readonly dynamicConfig: BehaviorSubject<DynamicConfig>;
  /** Cancels a sample on the server, where the server supports it. Returns whether it does. */
  cancelSample(requestId: string): boolean;
}

export function openSession(
  connection: Connection,
  id: string,
  dynamicConfig: DynamicConfig,
  cancel: (requestId: string) => void,
): OpenSession {
  const { sampleDispatchBytesSemaphoreSize, fwdbwdDispatchBytesSemaphoreSize, inflightResponseBytesSemaphoreSize } =
    connection.config;
  const opened: OpenSession = {
    id,
    connection,
    dispatcher: new SampleDispatcher(connection, sampleDispatchBytesSemaphoreSize),
    trainingBytes: new SharedBudget({ budget: fwdbwdDispatchBytesSemaphoreSize }),
    responseBytes: new SharedBudget({ budget: inflightResponseBytesSemaphoreSize }),
    wireFormat: new WireFormat(connection.events),
    losses: new CustomLosses(),
    dynamicConfig: new BehaviorSubject(dynamicConfig),
    cancelSample: (requestId) => {
      if (!opened.dynamicConfig.value.sampleCancelEnabled) return false;
      cancel(requestId);
      return true;
    },
  };
  return opened;
}

/** Sends the cancellations, at most as many at once as the service allows. A failed one is ignored. */
export function cancelOnServer(
  { connection, dynamicConfig }: OpenSession,
  cancels: Observable<string>,
): Observable<never> {
  const cancel = (requestId: string): Observable<unknown> =>
    connection
      .send({ path: 'cancel_future', lane: 'polls', json: { request_id: requestId }, timeoutMs: 30_000 })
      .pipe(catchError(() => EMPTY));
  const concurrency = dynamicConfig.pipe(map(({ sampleCancelMaxBatchSize }) => Math.max(1, sampleCancelMaxBatchSize)));
  return cancels.pipe(
    mergeMapWeighted(cancel, { weight: () => 0, budget: Infinity, concurrency, warn: false }),
    ignoreElements(),
  );
}
