import type * as t from 'io-ts';
import type { UntypedFuture } from '../../wire/futures.js';
import type { WorkKind } from '../events.js';

/** How a result is read, as JSON or as protobuf. */
export interface ResultFormat<A> {
  readonly json: t.Decoder<unknown, A>;
  readonly protobuf?: (bytes: Uint8Array) => A;
}

/** Work for the service: a request that it accepts first, and a result that is polled for. */
export interface Work<A> extends WorkKind {
  readonly path: string;
  readonly json: object;
  readonly format: ResultFormat<A>;
}

/** Work on its way to the service. */
export interface Sent extends WorkKind {
  readonly seqId: number | undefined;
  readonly bytes: number;
  readonly startedMs: number;
}

/** Work that the service has accepted. */
export interface Accepted extends Sent {
  readonly requestId: string;
  /** How long the submission took, in milliseconds; the first poll reports it to the service. */
  readonly roundtripMs: number;
  /** What the service said when it accepted the work. */
  readonly promise: UntypedFuture;
}
