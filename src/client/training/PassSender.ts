import { concatAll, concatMap, defer, forkJoin, from, map, takeUntil, toArray, type Observable } from 'rxjs';
import { zstdCompress } from '../../transport/system.js';
import type { PreparedDatum } from '../../wire/datum.js';
import { decodeForwardBackwardOutput } from '../../wire/proto/forwardBackwardOutput.js';
import { checkEncodable, encodeForwardBackwardRequest } from '../../wire/proto/forwardBackwardRequest.js';
import type { Json } from '../../wire/record.js';
import {
  ForwardBackwardOutputJson,
  ForwardBackwardRequestJson,
  ForwardRequestJson,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
  type LossFnConfig,
  type LossFnType,
} from '../../wire/training.js';
import { toChunks, type Chunk } from './chunks.js';
import { combineOutputs } from './combineOutputs.js';
import type { Call } from '../connection/Connection.js';
import { accept, awaitResult, type Accepted, type Submission } from '../results/awaitResult.js';
import { withoutUndefined, prepare } from '../connection/prepare.js';
import { resend } from '../connection/resend.js';
import type { ResultFormat } from '../results/retrieve.js';
import type { OpenSession } from '../session/Session.js';
import type { FutureProgress } from '../TinkerFuture.js';

const FORWARD_BACKWARD: ResultFormat<ForwardBackwardOutput> = {
  json: ForwardBackwardOutputJson,
  protobuf: decodeForwardBackwardOutput,
};

/** One forward or backward pass, its data checked. */
export interface Pass {
  readonly requestType: 'Forward' | 'ForwardBackward';
  readonly data: readonly PreparedDatum[];
  readonly lossFn: string;
  readonly lossFnConfig?: LossFnConfig;
}

/** Sends the forward and backward passes of one model, in as many requests as their data needs, and joins the results. */
export class PassSender {
  readonly #session: OpenSession;
  readonly #nextSeqId: () => number;

  constructor(
    session: OpenSession,
    readonly modelId: string,
    nextSeqId: () => number,
  ) {
    this.#session = session;
    this.#nextSeqId = nextSeqId;
  }

  /** Sends the data, in as many requests as it needs, and emits when the last one is accepted. */
  submit(pass: Pass, progress: FutureProgress): Observable<Accepted[]> {
    return defer(() => {
      if (!this.#session.wireFormat.byArrival) checkEncodable(pass.data);
      const { fwdbwdMaxChunkLen, fwdbwdMaxChunkBytesCount, parallelFwdbwdChunks } = this.#session.connection.config;
      const chunks = toChunks(pass.data, { maxLength: fwdbwdMaxChunkLen, maxBytes: fwdbwdMaxChunkBytesCount });
      const sends = chunks.map((chunk) => this.#sendChunk(pass, chunk, this.#nextSeqId(), progress));
      const [first, ...rest] = sends;
      if (first === undefined || rest.length === 0 || !parallelFwdbwdChunks || this.#session.wireFormat.byArrival) {
        return from(sends).pipe(concatAll(), toArray());
      }
      // The server starts when the first chunk arrives: by then the others should be there.
      return forkJoin(rest).pipe(concatMap((others) => first.pipe(map((accepted) => [accepted, ...others]))));
    }).pipe(takeUntil(this.#session.connection.closing));
  }

  #sendChunk(
    { requestType, lossFn, lossFnConfig }: Pass,
    { data, bytes }: Chunk,
    seqId: number,
    progress: FutureProgress,
  ): Observable<Accepted> {
    const { connection, trainingBytes, wireFormat } = this.#session;
    const forwardOnly = requestType === 'Forward';
    const request: ForwardBackwardRequest = {
      modelId: this.modelId,
      seqId,
      data,
      lossFn,
      forwardOnly,
      ...(lossFnConfig === undefined ? {} : { lossFnConfig }),
    };
    return trainingBytes.hold(bytes, () => {
      const submission: Submission = {
        requestType,
        target: this.modelId,
        seqId,
        bytes,
        startedMs: connection.scheduler.now(),
      };
      // Made once, sent as often as it takes: a retry is the same bytes under the same key.
      const protobuf = lazy(() => this.#protobufCall(request));
      const json = lazy((): Call => ({
        path: forwardOnly ? 'forward' : 'forward_backward',
        lane: 'training',
        json: forwardBackwardJson(request),
      }));
      const [protobufKey, jsonKey] = [connection.uuid(), connection.uuid()];
      const response = wireFormat
        .send(
          () => connection.attempt(protobuf(), protobufKey),
          () => connection.attempt(json(), jsonKey),
        )
        .pipe(resend(connection, 'forward_backward', 'send', { requestType, target: this.modelId }));
      return response.pipe(map((answer) => accept(this.#session, submission, answer, progress)));
    });
  }

  #protobufCall(request: ForwardBackwardRequest): Call {
    const bytes = encodeForwardBackwardRequest(request);
    const compress = this.#session.connection.config.protoCompressFwdbwd ? zstdCompress : undefined;
    const call = { path: 'forward_backward', lane: 'training' } as const;
    return compress === undefined
      ? { ...call, protobuf: bytes }
      : { ...call, protobuf: compress(bytes), headers: { 'content-encoding': 'zstd' } };
  }

  results(accepted: readonly Accepted[]): Observable<ForwardBackwardOutput> {
    return forkJoin(accepted.map((one) => awaitResult(this.#session, one, FORWARD_BACKWARD))).pipe(map(combineOutputs));
  }
}

const lazy = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined;
  return () => (made ??= { value: make() }).value;
};

/** SkyRL reads a tensor's values and nothing else: it would take sparse ones for a shorter row. */
const withDenseTensors = (datum: PreparedDatum): PreparedDatum => ({
  ...datum,
  lossFnInputs: Object.fromEntries(
    Object.entries(datum.lossFnInputs).map(([name, tensor]) => [name, tensor.toDense()]),
  ),
});

/** The same pass as JSON: servers that take no protobuf have an endpoint of its own for the forward pass. */
function forwardBackwardJson({
  modelId,
  seqId,
  data,
  lossFn,
  lossFnConfig,
  forwardOnly,
}: ForwardBackwardRequest): Json {
  const input = withoutUndefined({ data: data.map(withDenseTensors), lossFn: lossFn as LossFnType, lossFnConfig });
  return forwardOnly
    ? prepare(ForwardRequestJson, { modelId, seqId, forwardInput: input })
    : prepare(ForwardBackwardRequestJson, { modelId, seqId, forwardBackwardInput: input });
}
