import {
  encodeForwardBackwardOutput,
  encodeSampleResponse,
  ForwardBackwardOutputJson,
  SampleResponseJson,
  type SampleResponse,
} from '../../wire/index.js';
import { JSON_TYPE, PROTOBUF_TYPE } from '../http/reply.js';
import type { FutureResult, LocalFuture } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';
import { skyrlResult } from './skyrl.js';

export interface EncodedResult {
  readonly content: Uint8Array;
  readonly contentType: string;
}

/** The result as the client wants it: protobuf where it asked for that and the kind of result has a form in it. */
export function encodeResult(
  { options }: Pick<LocalService, 'options'>,
  future: LocalFuture,
  result: FutureResult,
  wantsProtobuf: boolean,
): EncodedResult {
  if (options.dialect === 'skyrl') return toJson(skyrlResult(result));
  if (wantsProtobuf && result.type === 'forward_backward') {
    return { content: encodeForwardBackwardOutput(result.value), contentType: PROTOBUF_TYPE };
  }
  if (wantsProtobuf && result.type === 'sample') {
    return { content: encodeSampleResponse(result.value), contentType: PROTOBUF_TYPE };
  }
  return toJson(jsonOf(result, future.owner.sampleSequenceIds));
}

const toJson = (value: object): EncodedResult => ({
  content: Buffer.from(JSON.stringify(value)),
  contentType: JSON_TYPE,
});

/** The JSON form of a result; sampled sequences carry the ids that were promised for them. */
export function jsonOf(result: FutureResult, sequenceIds?: readonly string[]): object {
  switch (result.type) {
    case 'json':
      return result.value;
    case 'forward_backward': {
      const { lossFnOutputType, lossFnOutputs, metrics } = result.value;
      return ForwardBackwardOutputJson.encode({
        lossFnOutputType,
        lossFnOutputs: [...lossFnOutputs],
        metrics: { ...metrics },
      });
    }
    case 'sample':
      return SampleResponseJson.encode({ ...result.value, sequences: stamped(result.value, sequenceIds) });
  }
}

const stamped = ({ sequences }: SampleResponse, sequenceIds?: readonly string[]) =>
  sequences.map((sequence, index) => {
    const sequenceId = sequenceIds?.[index];
    return sequenceId === undefined ? sequence : { ...sequence, sequenceId };
  });
