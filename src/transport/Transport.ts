import type { Observable } from 'rxjs';

/**
 * Requests that must not wait for each other: each lane has its own connections, so that two thousand long polls
 * cannot starve a heartbeat.
 */
export type Lane = 'session' | 'training' | 'sampling' | 'polls' | 'sessionPolls' | 'telemetry' | 'rest';

/** One HTTP request, as the client hands it to a transport. */
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
  /** When to give up: this long without any of the body leaving, or after it has left without the whole answer. */
  readonly timeoutMs: number;
}

/** One HTTP response, whatever its status. */
export interface TransportResponse {
  /** The HTTP status. */
  readonly status: number;
  /** Lower-case names; several values of one name are joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body: it is always read to its end, so that the connection can serve the next request. */
  readonly body: Uint8Array;
  /**
   * Whether all of the request's body had left before the answer began, and the transport keeps nothing of it, so that its memory may be
   * used again. Default: not known.
   */
  readonly requestLeft?: boolean;
}

/**
 * One request in, one Observable out. Cold: it sends on subscribe, emits the one response and completes; any HTTP
 * status is a response, and only a request that got none errors, with a {@link TransportFailure}. Unsubscribing
 * aborts the request.
 */
export interface Transport {
  (request: TransportRequest): Observable<TransportResponse>;
  /** Whether it enforces timeouts itself; if not, the client does. A timer per request is not free. */
  readonly timesOut?: boolean;
  /**
   * Whether a request in the lane would be sent at once. If not, `onRoom` is called once when it may be: thousands of samples wait
   * for that, and what waits before its request is made costs little. Default: yes.
   */
  readonly hasRoom?: (lane: Lane, onRoom: () => void) => boolean;
}

/**
 * Why a request got no answer. A `connection` that failed or broke and a `timeout` may pass; a server that is `untrusted`,
 * a `request` that cannot be sent as it is and an `answer` that is too large will be the same at the next try.
 */
export type FailureKind = 'connection' | 'timeout' | 'untrusted' | 'request' | 'answer';

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
