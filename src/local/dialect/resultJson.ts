import { ForwardBackwardOutputJson, SampleResponseJson, type SampleResponse } from '../../wire/index.js';
import { JSON_TYPE } from '../http/reply.js';
import type { FutureResult } from '../queue/localFuture.js';
import type { EncodedResult } from './dialect.js';

export const encodeJson = (value: object): EncodedResult => ({
  content: Buffer.from(JSON.stringify(value)),
  contentType: JSON_TYPE,
});

/** The JSON form of a result; sampled sequences carry the ids that were promised for them. */
export function resultJson(result: FutureResult, sequenceIds?: readonly string[]): Record<string, unknown> {
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
