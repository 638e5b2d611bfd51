import type { IncomingHttpHeaders } from 'node:http';

/** A request as the service saw it, for tests and logs. The headers are as they came, the key among them. */
export interface SeenRequest {
  /** The HTTP method. */
  readonly method: string;
  /** Below `/api/v1/`, without query: `forward_backward`, `training_runs/…`. */
  readonly endpoint: string;
  /** The query of the URL. */
  readonly query: URLSearchParams;
  /** The headers, names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Decompressed. */
  readonly body: Uint8Array;
  /** The body as JSON; undefined if it is not JSON. */
  readonly json: unknown;
}

/** What the server answered to a request. */
export interface SeenResponse {
  /** The request it answered. */
  readonly request: SeenRequest;
  /** 0 when the connection was cut instead. */
  readonly status: number;
  /** From the request's arrival to the end of the answer, in milliseconds. */
  readonly durationMs: number;
}
