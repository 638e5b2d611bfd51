import {
  Observable,
  EMPTY,
  Subject,
  catchError,
  concatMap,
  defer,
  map,
  of,
  takeUntil,
  tap,
  type OperatorFunction,
  type SchedulerLike,
  type Subscriber,
} from 'rxjs';
import { isLeft } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import { JwtTokenSource, type TokenSource } from '../../transport/auth.js';
import type { BaseUrl } from '../../transport/baseUrl.js';
import type { OnExit } from '../../transport/system.js';
import type { Lane, Transport, TransportRequest, TransportResponse } from '../../transport/Transport.js';
import { AuthTokenResponse, ClientConfig, ClientConfigRequest, DynamicConfig } from '../../wire/session.js';
import { Answer } from './Answer.js';
import { Billing } from './Billing.js';
import { ClosedError, NotFoundError, type TinkerError } from '../errors.js';
import { EventBus, type WorkKind } from '../events.js';
import type { ServerProfile } from '../profile.js';
import { mayHaveArrived, statusError } from './failure.js';
import { once } from './once.js';
import { decodeJson } from './readJson.js';
import { isSecretHeader, Secrets } from './Secrets.js';
import { resend } from './resend.js';

/** One call of the service. */
export interface Call {
  readonly method?: TransportRequest['method'];
  /** Below `/api/v1/`, query included. */
  readonly path: string;
  readonly lane: Lane;
  /** JSON, as a value or as what writes its text when it is sent, or protobuf bytes. */
  readonly json?: unknown;
  readonly writeJson?: () => string;
  readonly protobuf?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the connection's. */
  readonly timeoutMs?: number;
  /** A status that is an answer like a success, not a failure. */
  readonly alsoAnswer?: number;
}

export interface ConnectionOptions {
  readonly transport: Transport;
  readonly baseUrl: BaseUrl;
  readonly credential: TokenSource;
  /** The credential for services that require the credential command. */
  readonly commandCredential: () => TokenSource;
  readonly sdkVersion: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly scheduler: SchedulerLike;
  readonly background: SchedulerLike;
  readonly timeOfDay: SchedulerLike;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly onExit: OnExit;
  readonly timeoutMs: number;
  readonly pollTimeoutMs: number;
  /** Where to say what happens. Default: a bus of its own. */
  readonly events?: EventBus;
  /** What the server is known to have and to lack. */
  readonly profile?: ServerProfile;
  /** Known flags, where another process fetched them already. */
  readonly config?: ClientConfig;
}

const PROTOBUF = 'application/x-protobuf';
/** Bytes of a refusal that are read: what it says is in its first lines. */
const LONGEST_REFUSAL = 1024 * 1024;

/**
 * What every client of one service shares: the transport with the credential on it, the flags, the events, the billing
 * pause and the one way to try again.
 */
export class Connection {
  readonly baseUrl: BaseUrl;
  readonly sdkVersion: string;
  readonly scheduler: SchedulerLike;
  /** The same clock for background work: its timers do not keep the process alive. */
  readonly background: SchedulerLike;
  /** The machine's clock, which may be set: for what is compared with the clocks of others, never for durations. */
  readonly timeOfDay: SchedulerLike;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly onExit: OnExit;
  readonly events: EventBus;
  readonly billing: Billing;
  /** What must not be shown when a service echoes it. */
  readonly secrets = new Secrets();
  readonly #transport: Transport;
  readonly #options: ConnectionOptions;
  #tokens: TokenSource;
  #config: ClientConfig | undefined;
  #closed = false;
  readonly #closing = new Subject<void>();
  readonly #ready: Observable<ClientConfig>;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.baseUrl = options.baseUrl;
    this.sdkVersion = options.sdkVersion;
    this.scheduler = options.scheduler;
    this.background = options.background;
    this.timeOfDay = options.timeOfDay;
    this.random = options.random;
    this.uuid = options.uuid;
    this.onExit = options.onExit;
    this.secrets.addHeaders(options.headers);
    this.#transport = options.transport;
    this.#tokens = options.credential;
    this.events =
      options.events ??
      new EventBus(
        () => options.scheduler.now(),
        () => options.timeOfDay.now(),
      );
    this.billing = new Billing(() => (this.#config?.billingExceptionMaxPauseDurationSec ?? 3600) * 1000, this.events);
    this.#ready = once(
      (options.config === undefined ? this.#fetchConfig() : of(options.config)).pipe(
        map((config) => {
          this.#config = config;
          if (config.pjwtAuthEnabled) this.#exchangeTokens(config);
          return config;
        }),
        // Shared work may outlive the calls that wait for it, but not the client.
        takeUntil(this.#closing),
      ),
    );
  }

  get profile(): ServerProfile | undefined {
    return this.#options.profile;
  }

  /** The headers that every request carries, without secret ones. */
  get headers(): Readonly<Record<string, string>> {
    return Object.fromEntries(Object.entries(this.#options.headers).filter(([name]) => !isSecretHeader(name)));
  }

  /** The service's flags, fetched once. Everything but the flags themselves waits for them. */
  ready(): Observable<ClientConfig> {
    return this.#config === undefined ? this.#ready : of(this.#config);
  }

  /** The flags, after {@link Connection.ready}. */
  get config(): ClientConfig {
    if (this.#config === undefined) throw new Error('the flags were read before they arrived');
    return this.#config;
  }

  /** How long a poll may take to be answered. */
  get pollTimeoutMs(): number {
    return this.#options.pollTimeoutMs;
  }

  /** The JWT behind the requests, where the service uses them. */
  token(): Observable<string> {
    return this.ready().pipe(concatMap(() => this.#tokens.token()));
  }

  /** One try: the response if it is a success, else one of this library's errors. */
  attempt(call: Call, idempotencyKey?: string): Observable<TransportResponse> {
    return new Observable((subscriber) => {
      // Checked by each try: while a request waits to be retried, the token may change and the client may be closed.
      if (this.#closed && call.lane !== 'telemetry') {
        subscriber.error(new ClosedError('the client is closed'));
        return;
      }
      const current = this.#tokens.current();
      if (current !== undefined) return this.#exchange(call, current, idempotencyKey, subscriber);
      const answer = (token: string): Observable<TransportResponse> => this.#answer(call, token, idempotencyKey);
      this.#tokens.token().pipe(concatMap(answer)).subscribe(subscriber);
    });
  }

  #answer(call: Call, token: string, idempotencyKey: string | undefined): Observable<TransportResponse> {
    return new Observable((subscriber) => this.#exchange(call, token, idempotencyKey, subscriber));
  }

  /**
   * The one request under every other. By hand instead of `timeout`, `map` and `catchError`, because each sample
   * passes here twice, and those three together cost as much as the request itself.
   */
  #exchange(
    call: Call,
    token: string,
    idempotencyKey: string | undefined,
    subscriber: Subscriber<TransportResponse>,
  ): void {
    const { timeoutMs = this.#options.timeoutMs } = call;
    const answer = new Answer(subscriber, call, this);
    if (this.#transport.timesOut !== true) answer.limit(this.scheduler, timeoutMs);
    this.#transport(this.#toRequest(call, token, idempotencyKey, timeoutMs)).subscribe(answer);
  }

  /** Whether a request in the lane would be sent at once; if not, `onRoom` is called once when it may be. */
  hasRoom(lane: Lane, onRoom: () => void): boolean {
    return this.#transport.hasRoom?.(lane, onRoom) ?? true;
  }

  /** The error of an unsuccessful response. */
  refusal(response: TransportResponse, { method = 'POST', path, headers = {} }: Call): TinkerError {
    this.secrets.addHeaders(headers);
    const read = { ...response, body: response.body.subarray(0, LONGEST_REFUSAL) };
    return statusError(this.secrets.redactResponse(read), `${method} /api/v1/${path}`, this.timeOfDay.now());
  }

  /** Sends until it is accepted: every temporary failure is retried, for five minutes in all. */
  send(call: Call, kind?: WorkKind): Observable<TransportResponse> {
    return defer(() => {
      const idempotencyKey = call.method === 'GET' ? undefined : this.uuid();
      const attempt = this.attempt(call, idempotencyKey);
      return call.method === 'DELETE'
        ? this.#deletion(call, attempt)
        : attempt.pipe(resend(this, call.path, 'send', kind));
    });
  }

  /** After a try that may have arrived, a 404 says that it did. */
  #deletion({ path }: Call, attempt: Observable<TransportResponse>): Observable<TransportResponse> {
    let uncertain = false;
    return attempt.pipe(
      tap({ error: (error: unknown) => (uncertain ||= mayHaveArrived(error)) }),
      resend(this, path),
      catchError((error: unknown) => {
        if (uncertain && error instanceof NotFoundError)
          return of({ status: 204, headers: {}, body: new Uint8Array() });
        throw error;
      }),
    );
  }

  /** Sends once the flags have arrived. */
  call<A>(call: Call, codec: t.Type<A, unknown>): Observable<A> {
    return this.ready().pipe(
      concatMap(() => this.send(call)),
      decodeJson(codec, call.path),
    );
  }

  /** Fetches the flags that may change while the client runs; servers without them have the defaults. */
  fetchDynamicConfig(retry: boolean): Observable<DynamicConfig> {
    const call: Call = {
      path: 'client/dynamic_config',
      lane: 'session',
      json: { sdk_version: this.sdkVersion },
      timeoutMs: 10_000,
    };
    return (retry ? this.send(call) : this.attempt(call, this.uuid())).pipe(
      decodeJson(DynamicConfig, call.path),
      orDefaults(DynamicConfig),
    );
  }

  /** Emits when the client is closed, for background work. */
  get closing(): Observable<void> {
    return this.#closing;
  }

  /** No request but telemetry leaves from here on. */
  close(): void {
    this.#closed = true;
    this.#closing.next();
    this.#tokens.stop();
  }

  #fetchConfig(): Observable<ClientConfig> {
    const json = ClientConfigRequest.encode({ sdkVersion: this.sdkVersion });
    return this.send({ path: 'client/config', lane: 'session', json }).pipe(
      decodeJson(ClientConfig, 'client/config'),
      orDefaults(ClientConfig),
    );
  }

  #exchangeTokens(config: ClientConfig): void {
    const credential =
      config.credentialDefaultSource === 'credential_cmd'
        ? this.#options.commandCredential()
        : this.#options.credential;
    const exchange = credential.token().pipe(
      concatMap((token) => {
        const call: Call = { path: 'auth/token', lane: 'session', json: {} };
        return this.#answer(call, token, this.uuid());
      }),
    );
    const read = (response: Observable<TransportResponse>): Observable<string> =>
      response.pipe(
        decodeJson(AuthTokenResponse, 'auth/token'),
        map(({ jwt }) => jwt),
      );
    this.#tokens = new JwtTokenSource(read(exchange), read(exchange.pipe(resend(this, 'auth/token'))), this.timeOfDay);
  }

  #toRequest(call: Call, token: string, idempotencyKey: string | undefined, timeoutMs: number): TransportRequest {
    const { method = 'POST', lane, protobuf } = call;
    this.secrets.add(token);
    // Written out and assigned: spreading objects with such keys costs thirty times as much, and each sample does it twice.
    const headers: Record<string, string> = { 'x-api-key': token, accept: 'application/json' };
    if (idempotencyKey !== undefined) headers['x-idempotency-key'] = idempotencyKey;
    if (protobuf !== undefined) headers['content-type'] = PROTOBUF;
    else if (method !== 'GET') headers['content-type'] = 'application/json';
    for (const name in this.#options.headers) headers[name] = this.#options.headers[name]!;
    for (const name in call.headers) headers[name] = call.headers[name]!;
    const path = `/api/v1/${call.path}`;
    const { writeJson } = call;
    if (writeJson !== undefined) return new LateRequest(method, path, lane, headers, timeoutMs, writeJson);
    const body = protobuf ?? (call.json === undefined ? undefined : JSON.stringify(call.json));
    return body === undefined
      ? { method, path, lane, headers, timeoutMs }
      : { method, path, lane, headers, timeoutMs, body };
  }

  noteDeprecation({ headers }: TransportResponse, { path }: Call): void {
    const note = this.secrets.clean(headers['x-deprecation-note'] ?? '');
    const level = this.secrets.clean(headers['x-deprecation-level'] ?? 'warning');
    this.events.emit({ type: 'deprecation-noted', level, note, path });
  }
}

/**
 * A request whose body is written when it is read: hundreds may wait for a connection, and their texts would have to be moved about
 * by every garbage collection meanwhile.
 */
class LateRequest implements TransportRequest {
  constructor(
    readonly method: TransportRequest['method'],
    readonly path: string,
    readonly lane: Lane,
    readonly headers: Readonly<Record<string, string>>,
    readonly timeoutMs: number,
    readonly writeBody: () => string,
  ) {}

  get body(): string {
    return this.writeBody();
  }
}

/** Servers that lack an endpoint for flags have the flags' defaults. */
const orDefaults = <A>(codec: t.Type<A, unknown>): OperatorFunction<A, A> =>
  catchError((error: unknown) => {
    if (!(error instanceof NotFoundError)) throw error;
    const defaults = codec.decode({});
    return isLeft(defaults) ? EMPTY : of(defaults.right);
  });
