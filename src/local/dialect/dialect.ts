import type { HttpError } from '../http/httpError.js';
import type { Reply } from '../http/reply.js';
import type { FutureFailure, FutureResult, LocalFuture } from '../queue/localFuture.js';

export interface EncodedResult {
  readonly content: Uint8Array;
  readonly contentType: string;
}

export interface QueueNews {
  readonly state: string;
  readonly reason?: string | undefined;
}

/** How a kind of server speaks: what its ids look like, and how it writes promises, results and errors. */
export interface Dialect {
  /** Whether training work runs by seq_id or by arrival. */
  readonly order: 'seq_id' | 'arrival';
  /** Whether results of forward_backward hold the loss of each token. */
  readonly elementwiseLoss: boolean;
  /** Whether a pass without data is accepted and its future never settles. */
  readonly losesEmptyPasses: boolean;
  sessionId(): string;
  modelId(sessionId: string, modelSeqId: number): string;
  samplerId(sessionId: string, samplingSessionSeqId: number): string;
  /** The answer to accepted work. */
  promise(future: LocalFuture): object;
  encode(future: LocalFuture, result: FutureResult, acceptsProtobuf: boolean): EncodedResult;
  failed(failure: FutureFailure): Reply;
  tryAgain(future: LocalFuture, news: QueueNews): Reply;
  error(error: HttpError): Reply;
}
