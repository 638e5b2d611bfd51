import {
  asyncScheduler,
  concat,
  defer,
  from,
  ignoreElements,
  of,
  throwIfEmpty,
  type Observable,
  type SchedulerLike,
} from 'rxjs';
import type { Dispatcher } from 'undici';
import { resolveCommandCredential, resolveCredential, type TokenSource } from '../../transport/auth.js';
import { DEFAULT_BASE_URL, resolveBaseUrl } from '../../transport/baseUrl.js';
import { steadyBackground, steadyScheduler } from '../../transport/schedulers.js';
import { systemExit, systemRandom, systemUuid } from '../../transport/system.js';
import { TransportFailure, type Lane, type Transport } from '../../transport/Transport.js';
import { HEADER_NAME, HEADER_VALUE, RESERVED_HEADERS } from '../../transport/LanePool.js';
import { socketTransport, type SocketTransport } from '../../transport/socketTransport.js';
import type { ClientConfig } from '../../wire/session.js';
import { refuseUnknownKeys } from '../../wire/record.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { FromHandleOptions } from '../SamplingClient.js';
import type { ServiceClientOptions } from '../ServiceClient.js';
import type { Lifecycle } from '../session/Lifecycle.js';
import type { LogLevel } from '../session/log.js';
import type { EventBus } from '../events.js';
import { Connection } from './Connection.js';

/** The version of the official SDK whose protocol this client speaks; the hosted service gates on it. */
export const SDK_VERSION = '0.36.0';

/** How to reach the service. */
export interface ConnectOptions {
  /** Default: `TINKER_API_KEY`, the output of `TINKER_CREDENTIAL_CMD`, or the stored key. */
  readonly apiKey?: string;
  /** Default: `TINKER_BASE_URL`, or the hosted service. */
  readonly baseUrl?: string;
  /** How the key is sent: as `X-API-Key`, or as `Authorization: Bearer`, which some other servers want. Default `x-api-key`. */
  readonly auth?: 'x-api-key' | 'bearer';
  /** The SDK version to claim. Default {@link SDK_VERSION}. */
  readonly sdkVersion?: string;
  /** Sent with every request, over the defaults. */
  readonly defaultHeaders?: Readonly<Record<string, string>>;
  /**
   * How requests travel. Default: real sockets, HTTP/2 where the service offers it over TLS, HTTP/1.1 elsewhere and through
   * a proxy; the usual proxy variables are respected.
   */
  readonly transport?: Transport;
  /**
   * All waiting goes through it. Default: RxJS's asyncScheduler with a clock that neither jumps when the machine's is set nor counts the time
   * in which the machine slept.
   */
  readonly scheduler?: SchedulerLike;
  /** Numbers from 0 to 1, for jitter. Default: the machine's. */
  readonly random?: () => number;
  /** Idempotency keys. Default: random UUIDs. */
  readonly uuid?: () => string;
  /** When to give up on a poll's answer and ask again. Default 45,000; servers hold polls for up to half a minute. */
  readonly pollTimeoutMs?: number;
  /**
   * When to give up on the answer to any other request, in milliseconds. A request with a large body gets a second more for every
   * 64 kB. Default 60,000.
   */
  readonly timeoutMs?: number;
  /** What to print on stderr. Default `TINKER_LOG`, else `warning`: what the service asks to be shown, and what holds up a call. */
  readonly logLevel?: LogLevel;
  /**
   * Most connections of each lane. Default: no limit for polls, 128 for training and sampling, fewer for the rest. Over
   * HTTP/2 a connection carries many requests, and a lane rarely needs more than one.
   */
  readonly connections?: Partial<Readonly<Record<Lane, number>>>;
  /** An undici `Dispatcher` that carries every request over HTTP/1.1, such as a `MockAgent`. Default: the client opens its connections. */
  readonly dispatcher?: Dispatcher;
  /** @internal */
  readonly credential?: TokenSource;
  /** @internal Where to say what happens. */
  readonly events?: EventBus;
  /** @internal Flags that another process fetched. */
  readonly config?: ClientConfig;
}

/** Every option of every client that connects; one that is missing here does not compile. */
const OPTION_NAMES: ReadonlySet<string> = new Set(
  Object.keys({
    apiKey: true,
    auth: true,
    baseUrl: true,
    config: true,
    connections: true,
    credential: true,
    defaultHeaders: true,
    dispatcher: true,
    displayName: true,
    events: true,
    logLevel: true,
    pollTimeoutMs: true,
    projectId: true,
    random: true,
    retry: true,
    scheduler: true,
    sdkVersion: true,
    tags: true,
    telemetry: true,
    timeoutMs: true,
    transport: true,
    userMetadata: true,
    uuid: true,
  } satisfies Record<keyof ServiceClientOptions | keyof FromHandleOptions, true>),
);

export interface Connected {
  readonly connection: Connection;
  /** Present where this client opened the sockets itself. */
  readonly sockets: SocketTransport | undefined;
}

/** Builds a connection of options and environment. Nothing is sent. @throws ValidationError for a bad key or URL. */
export function connect(options: ConnectOptions): Connected {
  if (typeof options !== 'object' || options === null) throw new ValidationError('options must be an object');
  refuseUnknownKeys(options, OPTION_NAMES, 'options');
  const { env } = process;
  const baseUrl = resolveBaseUrl(options.baseUrl, env['TINKER_BASE_URL']);
  const isHosted = baseUrl.origin === new URL(DEFAULT_BASE_URL).origin;
  const credentials = { apiKey: options.apiKey, isHosted, environment: env };
  const credential = options.credential ?? resolveCredential(credentials);
  const { connections = {}, dispatcher, auth = 'x-api-key' } = options;
  if (auth !== 'x-api-key' && auth !== 'bearer')
    throw new ValidationError(`auth must be x-api-key or bearer, got ${JSON.stringify(auth)}`);
  const sockets =
    options.transport === undefined
      ? socketTransport({ baseUrl, connections, ...(dispatcher === undefined ? {} : { dispatcher }) })
      : undefined;
  const connection = new Connection({
    transport: sockets?.transport ?? answering(options.transport!),
    baseUrl,
    credential,
    commandCredential: () => resolveCommandCredential(credentials),
    auth,
    sdkVersion: options.sdkVersion ?? SDK_VERSION,
    headers: checkedHeaders({ ...cloudflareHeaders(env), ...options.defaultHeaders }),
    scheduler: options.scheduler ?? steadyScheduler,
    background: options.scheduler ?? steadyBackground,
    // Tokens and dates of servers go by the time of day.
    timeOfDay: options.scheduler ?? asyncScheduler,
    random: options.random ?? systemRandom,
    uuid: options.uuid ?? systemUuid,
    // Under virtual time, the end of the process is not the end of the program.
    onExit: options.scheduler === undefined ? systemExit : () => () => undefined,
    timeoutMs: positive('timeoutMs', options.timeoutMs ?? 60_000),
    pollTimeoutMs: positive('pollTimeoutMs', options.pollTimeoutMs ?? 45_000),
    ...(options.config === undefined ? {} : { config: options.config }),
    ...(options.events === undefined ? {} : { events: options.events }),
  });
  return { connection, sockets };
}

/** Takes no more calls, waits for those that are pending, and closes the connection. */
export function closeWhenIdle(
  connection: Connection,
  lifecycle: Lifecycle,
  sockets: SocketTransport | undefined,
): Observable<void> {
  lifecycle.close();
  return concat(
    lifecycle.whenIdle().pipe(ignoreElements()),
    defer(() => {
      connection.close();
      return sockets === undefined ? of(undefined) : from(sockets.close());
    }),
  );
}

/** A custom transport may end without an answer; the call would then succeed with nothing. */
const answering =
  (transport: Transport): Transport =>
  (request) =>
    transport(request).pipe(
      throwIfEmpty(() => new TransportFailure('connection', 'the transport ended without an answer')),
    );

function positive(name: string, value: number): number {
  if (!(value > 0)) throw new ValidationError(`${name} must be > 0, got ${value}`);
  return value;
}

function cloudflareHeaders(env: NodeJS.ProcessEnv): Record<string, string> {
  const { CLOUDFLARE_ACCESS_CLIENT_ID: id, CLOUDFLARE_ACCESS_CLIENT_SECRET: secret } = env;
  return { ...(id ? { 'cf-access-client-id': id } : {}), ...(secret ? { 'cf-access-client-secret': secret } : {}) };
}

/** The headers with lower-case names. @throws ValidationError naming one that cannot be sent, never its value. */
function checkedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name))
      throw new ValidationError(`defaultHeaders: ${JSON.stringify(name)} is not the name of a header`);
    if (RESERVED_HEADERS.has(name.toLowerCase()))
      throw new ValidationError(`defaultHeaders: ${name} cannot be set; the connection writes it`);
    if (typeof value !== 'string' || !HEADER_VALUE.test(value))
      throw new ValidationError(
        `defaultHeaders: ${name} must be a text of characters that a header can carry (Latin-1)`,
      );
  }
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
