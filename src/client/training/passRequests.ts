import { zstdCompress } from '../../transport/system.js';
import { estimateDatumBytes, prepareDatum, type Datum, type PreparedDatum } from '../../wire/datum.js';
import { checkEncodable, encodeForwardBackwardRequest } from '../../wire/proto/forwardBackwardRequest.js';
import type { Json } from '../../wire/record.js';
import { ValidationError } from '../../wire/tinkerError.js';
import {
  ForwardBackwardRequestJson,
  ForwardRequestJson,
  LOSS_CONFIG_KEYS,
  LossFnConfig,
  LossFnType,
  type ForwardBackwardRequest,
} from '../../wire/training.js';
import type { Call } from '../connection/Connection.js';
import { prepare, withoutUndefined } from '../../wire/record.js';
import type { OpenSession } from '../session/Session.js';
import type { NumberedRequest } from './NumberedSends.js';

/** One forward or backward pass, its data checked. */
export type Pass = Omit<ForwardBackwardRequest, 'modelId' | 'seqId'>;

/** @throws ValidationError naming the datum and the field. */
export function prepareData(data: readonly Datum[]): PreparedDatum[] {
  if (!Array.isArray(data)) throw new ValidationError('data must be a list of datums');
  if (data.length === 0) throw new ValidationError('data is empty: a pass needs at least one datum');
  return data.map(prepareDatum);
}

/** @throws ValidationError for a loss that the service does not have, or a config that the loss does not take. */
export function checkLoss(lossFn: string, config: LossFnConfig | undefined): void {
  if (!LossFnType.is(lossFn))
    throw new ValidationError(`unknown loss ${JSON.stringify(lossFn)}: expected ${LossFnType.name}`);
  if (config === undefined) return;
  if (!LossFnConfig.is(config)) throw new ValidationError('lossFnConfig must hold finite numbers or strings');
  const taken = (LOSS_CONFIG_KEYS as Partial<Record<LossFnType, readonly string[]>>)[lossFn];
  if (taken === undefined) return;
  const takes = taken.length === 0 ? `${lossFn} takes none` : `${lossFn} takes ${taken.join(', ')}`;
  for (const key of Object.keys(config))
    if (!taken.includes(key)) throw new ValidationError(`lossFnConfig.${key} is unknown: ${takes}`);
}

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
  const chunks = toChunks(pass.data, fwdbwdMaxChunkLen, fwdbwdMaxChunkBytesCount);
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
        () => {
          const zstd = compressed?.();
          const headers = zstd === undefined ? {} : { 'content-encoding': 'zstd' };
          const call: Call = { path: 'forward_backward', lane: 'training', protobuf: zstd ?? message(), headers };
          return connection.attempt(call, protobufKey);
        },
        () => connection.attempt(json(), jsonKey),
      ),
    };
  });
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

/** Cuts data into requests of bounded length and size. A datum that is too large for any is a separate chunk. */
function toChunks(data: readonly PreparedDatum[], maxLength: number, maxBytes: number) {
  const chunks: { readonly data: PreparedDatum[]; bytes: number }[] = [];
  let current: (typeof chunks)[number] | undefined;
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
