import { zstdCompress } from '../../transport/system.js';
import { estimateDatumBytes, type PreparedDatum } from '../../wire/datum.js';
import { checkEncodable, encodeForwardBackwardRequest } from '../../wire/proto/forwardBackwardRequest.js';
import type { Json } from '../../wire/record.js';
import {
  ForwardBackwardRequestJson,
  ForwardRequestJson,
  type ForwardBackwardRequest,
  type LossFnType,
} from '../../wire/training.js';
import type { Call } from '../connection/Connection.js';
import { prepare, withoutUndefined } from '../../wire/record.js';
import type { OpenSession } from '../session/Session.js';
import type { NumberedRequest } from './NumberedSends.js';

/** One forward or backward pass, its data checked. */
export type Pass = Omit<ForwardBackwardRequest, 'modelId' | 'seqId'>;

/**
 * A pass as the requests that carry it: one per chunk of its data, numbered from `firstSeqId` on. Bodies are encoded
 * when they are first needed and kept, so that a retry is the same bytes under the same key.
 */
export function passRequests(
  { connection, wireFormat }: OpenSession,
  modelId: string,
  pass: Pass,
  firstSeqId: number,
): NumberedRequest[] {
  if (!wireFormat.byArrival) checkEncodable(pass.data);
  const { fwdbwdMaxChunkLen, fwdbwdMaxChunkBytesCount, protoCompressFwdbwd } = connection.config;
  const chunks = toChunks(pass.data, { maxLength: fwdbwdMaxChunkLen, maxBytes: fwdbwdMaxChunkBytesCount });
  return chunks.map(({ data, bytes }, index) => {
    const seqId = firstSeqId + index;
    const request: ForwardBackwardRequest = { ...pass, data, modelId, seqId };
    const message = lazy(() => encodeForwardBackwardRequest(request));
    const compressed = protoCompressFwdbwd ? lazy(() => zstdCompress()?.(message())) : undefined;
    const json = lazy((): Call => {
      const path = request.forwardOnly ? 'forward' : 'forward_backward';
      return { path, lane: 'training', json: forwardBackwardJson(request) };
    });
    const [protobufKey, jsonKey] = [connection.uuid(), connection.uuid()];
    return {
      seqId,
      bytes,
      path: 'forward_backward',
      content: message,
      attempt: wireFormat.send(
        () => connection.attempt(protobufCall(message(), compressed?.()), protobufKey),
        () => connection.attempt(json(), jsonKey),
      ),
    };
  });
}

function protobufCall(message: Uint8Array, compressed: Uint8Array | undefined): Call {
  const call = { path: 'forward_backward', lane: 'training' } as const;
  return compressed === undefined
    ? { ...call, protobuf: message }
    : { ...call, protobuf: compressed, headers: { 'content-encoding': 'zstd' } };
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

/** The same pass as JSON. Servers that take only JSON have a separate endpoint for the forward pass. */
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

export interface Chunk {
  readonly data: readonly PreparedDatum[];
  readonly bytes: number;
}

export interface ChunkLimits {
  readonly maxLength: number;
  readonly maxBytes: number;
}

/** Cuts data into requests of bounded length and size. A datum that is too large for any is a chunk of its own. */
function toChunks(data: readonly PreparedDatum[], { maxLength, maxBytes }: ChunkLimits): Chunk[] {
  const chunks: { data: PreparedDatum[]; bytes: number }[] = [];
  let current: { data: PreparedDatum[]; bytes: number } | undefined;
  for (const datum of data) {
    const bytes = estimateDatumBytes(datum);
    if (current === undefined || current.data.length === maxLength || current.bytes + bytes > maxBytes) {
      current = { data: [], bytes: 0 };
      chunks.push(current);
    }
    current.data.push(datum);
    current.bytes += bytes;
  }
  return chunks;
}
