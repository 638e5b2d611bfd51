import type { Observable } from 'rxjs';

/**
 * Requests that must not wait for each other: each lane has its own connections, so that two thousand long polls
 * cannot starve a heartbeat.
 */
export type Lane = 'session' | 'training' | 'sampling' | 'polls' | 'sessionPolls' | 'telemetry' | 'rest';

/** One HTTP request, as the client hands it to a transport: a plain object, so that a wrapper may copy and change it. */
export interface TransportRequest {
  /** The HTTP method. */
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base URL, from its slash on, query included: `/api/v1/asample`. */
  readonly path: string;
  /** Which connection pool it goes through. */
  readonly lane: Lane;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body: JSON text or protobuf bytes. Default: none. */
  readonly body?: string | Uint8Array;
  /** When the client gives up on the answer. The client adds the time that a slow line needs for the body; see `withTimeout`. */
  readonly timeoutMs: number;
  /** About how large the answer will be, if that is known. A large answer gets more time. Default 0. */
  readonly answerBytes?: number;
}

/** One HTTP response, whatever its status. */
export interface TransportResponse {
  /** The HTTP status. */
  readonly status: number;
  /** Lower-case names; several values of one name are joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body: it is always read to its end, so that the connection can serve the next request. */
  readonly body: Uint8Array;
}

/**
 * One request in, one Observable out. Cold: it sends on subscribe, emits the one response and completes; any HTTP
 * status is a response, and only a request that got none errors, with a {@link TransportFailure}. Unsubscribing
 * aborts the request. Time limits are the client's: a transport needs none.
 */
export type Transport = (request: TransportRequest) => Observable<TransportResponse>;

/**
 * Why a request got no answer. A `connection` that failed and a `timeout` may pass. A `reset` is a connection that the server closed
 * before the first byte of the answer: worth another try at once. A server that is `untrusted`, a `proxy` that wants other
 * credentials, a `request` that cannot be sent as it is and an `answer` that is too large will be the same at the next try.
 */
export type FailureKind = 'connection' | 'timeout' | 'reset' | 'untrusted' | 'proxy' | 'request' | 'answer';

/** A request that got no answer. */
export class TransportFailure extends Error {
  /** Always `TransportFailure`. */
  override readonly name = 'TransportFailure';

  constructor(
    /** What went wrong with the connection. */
    readonly kind: FailureKind,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}
