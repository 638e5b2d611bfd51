import {
  EMPTY,
  Observable,
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
import { once } from '../../transport/once.js';
import type { OnExit } from '../../transport/system.js';
import {
  TransportFailure,
  type Lane,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from '../../transport/Transport.js';
import { withTimeout } from '../../transport/withTimeout.js';
import { AuthTokenResponse, ClientConfig, ClientConfigRequest, DynamicConfig } from '../../wire/session.js';
import { decodeJson } from './answer.js';
import { Billing } from './Billing.js';
import { AuthenticationError, ClosedError, NotFoundError, type TinkerError } from '../errors.js';
import { EventBus, type WorkKind } from '../events.js';
import { connectionError, mayHaveArrived, statusError } from './failure.js';
import { retryFailures } from './retryFailures.js';
import { isSecretHeader, Secrets } from './Secrets.js';

/** One call of the service. */
export interface Call {
  readonly method?: TransportRequest['method'];
  /** Below `/api/v1/`, query included. */
  readonly path: string;
  readonly lane: Lane;
  /** The body: JSON as a value or as text that is written when it is sent, or protobuf bytes. */
  readonly json?: unknown;
  readonly jsonText?: () => string;
  readonly protobuf?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the connection's. */
  readonly timeoutMs?: number;
  /** About how large the answer will be, where that is known. */
  readonly answerBytes?: number;
  /** A status that is an answer like a success, not a failure. */
  readonly alsoAnswer?: number;
}

export interface ConnectionOptions {
  readonly transport: Transport;
  readonly baseUrl: BaseUrl;
  readonly credential: TokenSource;
  /** The credential for services that require the credential command. */
  readonly commandCredential: () => TokenSource;
  /** How the credential is sent. */
  readonly auth: 'x-api-key' | 'bearer';
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
  /** Where to say what happens. Default: a new bus. */
  readonly events?: EventBus;
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
  readonly pollTimeoutMs: number;
  readonly events: EventBus;
  readonly billing: Billing;
  /** What must not be shown when a service echoes it. */
  readonly secrets = new Secrets();
  readonly #transport: Transport;
  readonly #options: ConnectionOptions;
  #tokens: TokenSource;
  /** The service's flags, after {@link Connection.ready}. */
  config!: ClientConfig;
  #lastToken = '';
  #isReady = false;
  #closed = false;
  readonly #closing = new Subject<void>();
  /** Emits when the client is closed, for background work. */
  readonly closing: Observable<void> = this.#closing;
  readonly #ready: Observable<ClientConfig>;

  constructor(options: ConnectionOptions) {
    const { scheduler, timeOfDay } = options;
    this.#options = options;
    this.baseUrl = options.baseUrl;
    this.sdkVersion = options.sdkVersion;
    this.scheduler = scheduler;
    this.background = options.background;
    this.timeOfDay = timeOfDay;
    this.random = options.random;
    this.uuid = options.uuid;
    this.onExit = options.onExit;
    this.pollTimeoutMs = options.pollTimeoutMs;
    this.secrets.addHeaders(options.headers);
    this.#transport = withTimeout(options.transport, scheduler);
    this.#tokens = options.credential;
    this.events = options.events ?? new EventBus(scheduler, timeOfDay);
    this.billing = new Billing(
      () => ((this.config as ClientConfig | undefined)?.billingExceptionMaxPauseDurationSec ?? 3600) * 1000,
      this.events,
    );
    this.#ready = once(
      (options.config === undefined ? this.#fetchConfig() : of(options.config)).pipe(
        tap((config) => {
          this.config = config;
          this.#isReady = true;
          if (config.pjwtAuthEnabled) this.#exchangeTokens(config);
        }),
        // Shared work may outlive the calls that wait for it, but not the client.
        takeUntil(this.#closing),
      ),
    );
  }

  /** The headers that every request carries, without secret ones. */
  get headers(): Readonly<Record<string, string>> {
    return Object.fromEntries(Object.entries(this.#options.headers).filter(([name]) => !isSecretHeader(name)));
  }

  /** The service's flags, fetched once. Everything but the flags themselves waits for them. */
  ready(): Observable<ClientConfig> {
    return this.#isReady ? of(this.config) : this.#ready;
  }

  /** The JWT behind the requests, where the service uses them. */
  token(): Observable<string> {
    return this.ready().pipe(concatMap(() => this.#tokens.token()));
  }

  /**
   * One try: the response if it is a success, else one of this library's errors. A token that the service refuses is renewed, once.
   *
   * By hand, since there are two for each sample, and thousands at a time: as `defer`, `map` and `catchError`, with the operators of a
   * poll that were made before they were needed, a sample took 380 µs of CPU; it takes 280 (bench/samples.mjs).
   */
  attempt(call: Call, idempotencyKey?: string): Observable<TransportResponse> {
    return new Observable((subscriber) => {
      // Checked by each try: while a request waits to be retried, the token may change and the client may be closed.
      if (this.#closed && call.lane !== 'telemetry') return subscriber.error(new ClosedError('the client is closed'));
      const token = this.#tokens.current();
      if (token !== undefined) return this.#exchange(subscriber, call, token, idempotencyKey);
      this.#tokens
        .token()
        .pipe(this.#exchanging(call, idempotencyKey, true))
        .subscribe(subscriber);
    });
  }

  /** The answer to a request with each token. */
  #exchanging(call: Call, key: string | undefined, mayRenew: boolean): OperatorFunction<string, TransportResponse> {
    return concatMap(
      (token) =>
        new Observable<TransportResponse>((subscriber) => this.#exchange(subscriber, call, token, key, mayRenew)),
    );
  }

  /** One request and its answer. */
  #exchange(
    subscriber: Subscriber<TransportResponse>,
    call: Call,
    token: string,
    idempotencyKey: string | undefined,
    mayRenew = true,
  ): void {
    const fail = (error: unknown): void => {
      const renewed = error instanceof AuthenticationError && mayRenew ? this.#tokens.renew?.(token) : undefined;
      if (renewed === undefined) return subscriber.error(error);
      renewed.pipe(this.#exchanging(call, idempotencyKey, false)).subscribe(subscriber);
    };
    const answer = this.#transport(this.#toRequest(call, token, idempotencyKey)).subscribe({
      next: (response) => {
        const { status, headers } = response;
        if (headers['x-deprecation-note'] !== undefined) this.#noteDeprecation(headers, call.path);
        if ((status < 200 || status >= 300) && status !== call.alsoAnswer) return fail(this.#refusal(response, call));
        subscriber.next(response);
        subscriber.complete();
      },
      error: (error) => fail(error instanceof TransportFailure ? connectionError(error, nameOf(call)) : error),
    });
    subscriber.add(answer);
  }

  /** The error of an unsuccessful response. */
  #refusal({ status, headers, body }: TransportResponse, call: Call): TinkerError {
    this.secrets.addHeaders(call.headers ?? {});
    const read = { status, headers, body: body.subarray(0, LONGEST_REFUSAL) };
    return statusError(this.secrets.redactResponse(read), nameOf(call), this.timeOfDay.now());
  }

  /** Sends until it is accepted: every temporary failure is retried, for five minutes in all. */
  send(call: Call, kind?: WorkKind): Observable<TransportResponse> {
    return defer(() => {
      const { method, path } = call;
      const attempt = this.attempt(call, method === 'GET' ? undefined : this.uuid());
      const retrying = retryFailures<TransportResponse>(this, { phase: 'send', path, about: kind ?? {} });
      return method === 'DELETE' ? this.#deletion(attempt, retrying) : attempt.pipe(retrying);
    });
  }

  /** After a try that may have arrived, a 404 says that it did. */
  #deletion(
    attempt: Observable<TransportResponse>,
    retrying: OperatorFunction<TransportResponse, TransportResponse>,
  ): Observable<TransportResponse> {
    let uncertain = false;
    return attempt.pipe(
      tap({ error: (error: unknown) => (uncertain ||= mayHaveArrived(error)) }),
      retrying,
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
    const call: Call = { path: 'auth/token', lane: 'session', json: {} };
    const exchange = defer(() => credential.token().pipe(this.#exchanging(call, this.uuid(), false)));
    const read = (response: Observable<TransportResponse>): Observable<string> =>
      response.pipe(
        decodeJson(AuthTokenResponse, call.path),
        map(({ jwt }) => jwt),
      );
    const patient = exchange.pipe(retryFailures(this, { phase: 'send', path: call.path }));
    this.#tokens = new JwtTokenSource(read(exchange), read(patient), this.background, this.timeOfDay);
  }

  #toRequest(call: Call, token: string, idempotencyKey: string | undefined): TransportRequest {
    const { method = 'POST', lane, protobuf, json, timeoutMs = this.#options.timeoutMs, answerBytes } = call;
    if (token !== this.#lastToken) this.secrets.add((this.#lastToken = token));
    // Written out and assigned: spreading objects with such keys costs thirty times as much, and each sample does it twice.
    const headers: Record<string, string> = { accept: 'application/json' };
    if (this.#options.auth === 'bearer') headers['authorization'] = `Bearer ${token}`;
    else headers['x-api-key'] = token;
    if (idempotencyKey !== undefined) headers['x-idempotency-key'] = idempotencyKey;
    if (protobuf !== undefined) headers['content-type'] = PROTOBUF;
    else if (method !== 'GET') headers['content-type'] = 'application/json';
    for (const name in this.#options.headers) headers[name] = this.#options.headers[name]!;
    for (const name in call.headers) headers[name] = call.headers[name]!;
    const request = { method, path: `/api/v1/${call.path}`, lane, headers, timeoutMs };
    const body = protobuf ?? call.jsonText?.() ?? (json === undefined ? undefined : JSON.stringify(json));
    if (body === undefined) return request;
    return answerBytes === undefined ? { ...request, body } : { ...request, body, answerBytes };
  }

  #noteDeprecation(headers: TransportResponse['headers'], path: string): void {
    const note = this.secrets.clean(headers['x-deprecation-note'] ?? '');
    const level = this.secrets.clean(headers['x-deprecation-level'] ?? 'warning');
    this.events.emit({ type: 'deprecation-noted', level, note, path });
  }
}

const nameOf = ({ method = 'POST', path }: Call): string => `${method} /api/v1/${path}`;

/** Servers that lack an endpoint for flags have the flags' defaults. */
const orDefaults = <A>(codec: t.Type<A, unknown>): OperatorFunction<A, A> =>
  catchError((error: TinkerError) => {
    if (!(error instanceof NotFoundError)) throw error;
    const defaults = codec.decode({});
    return isLeft(defaults) ? EMPTY : of(defaults.right);
  });
