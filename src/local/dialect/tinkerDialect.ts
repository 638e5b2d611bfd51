import { randomUUID } from 'node:crypto';
import { encodeForwardBackwardOutput, encodeSampleResponse } from '../../wire/index.js';
import { json, PROTOBUF_TYPE } from '../http/reply.js';
import type { Dialect } from './dialect.js';
import { encodeJson, resultJson } from './resultJson.js';

/** As the hosted service speaks. */
export const tinkerDialect = (tryAgainAs: 'status' | 'body'): Dialect => ({
  order: 'seq_id',
  elementwiseLoss: false,
  losesEmptyPasses: false,
  sessionId: () => randomUUID(),
  modelId: (sessionId, modelSeqId) => `${sessionId}:train:${modelSeqId}`,
  samplerId: (sessionId, seqId) => `${sessionId}:sample:${seqId}`,
  promise: ({ requestId, owner }) => ({
    request_id: requestId,
    ...(owner.modelId === undefined ? {} : { model_id: owner.modelId }),
    ...(owner.sampleSequenceIds === undefined ? {} : { sample_sequence_ids: owner.sampleSequenceIds }),
  }),
  encode: ({ owner }, result, acceptsProtobuf) => {
    if (acceptsProtobuf && result.type === 'forward_backward') {
      return { content: encodeForwardBackwardOutput(result.value), contentType: PROTOBUF_TYPE };
    }
    if (acceptsProtobuf && result.type === 'sample') {
      return { content: encodeSampleResponse(result.value), contentType: PROTOBUF_TYPE };
    }
    return encodeJson(resultJson(result, owner.sampleSequenceIds));
  },
  failed: ({ error, category }) => json({ error, category }),
  tryAgain: ({ requestId }, { state, reason }) => {
    const body = {
      type: 'try_again',
      request_id: requestId,
      queue_state: state,
      ...(reason === undefined ? {} : { queue_state_reason: reason }),
    };
    return json(body, tryAgainAs === 'status' ? 408 : 200);
  },
  error: ({ status, detail, headers }) => json({ detail }, status, headers),
});
