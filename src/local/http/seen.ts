import type { IncomingHttpHeaders } from 'node:http';

/** A request as the service saw it, for tests and logs. The headers are as they came, the key among them. */
export interface SeenRequest {
  readonly method: string;
  /** Below `/api/v1/`, without query: `forward_backward`, `training_runs/…`. */
  readonly endpoint: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Decompressed. */
  readonly body: Uint8Array;
  /** The body as JSON; undefined if it is not JSON. */
  readonly json: unknown;
}

export interface SeenResponse {
  readonly request: SeenRequest;
  /** 0 when the connection was cut instead. */
  readonly status: number;
  readonly durationMs: number;
}
