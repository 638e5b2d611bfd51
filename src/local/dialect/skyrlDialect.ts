import { randomBytes } from 'node:crypto';
import { json, text } from '../http/reply.js';
import type { FutureResult } from '../queue/localFuture.js';
import type { Dialect } from './dialect.js';
import { encodeJson, resultJson } from './resultJson.js';

const id = (kind: string): string => `${kind}_${randomBytes(4).toString('hex')}`;

/** As the SkyRL server of the PyPI package `skyrl` 0.3.0 speaks: JSON only, and FastAPI's errors. */
export const skyrlDialect: Dialect = {
  order: 'arrival',
  elementwiseLoss: true,
  losesEmptyPasses: true,
  sessionId: () => id('session'),
  modelId: () => id('model'),
  samplerId: () => id('sampling'),
  promise: ({ requestId, owner: { requestType, modelId } }) =>
    requestType === 'CreateModel' || requestType === 'UnloadModel'
      ? { request_id: requestId, model_id: modelId, status: 'created' }
      : { request_id: requestId, future_id: requestId, status: 'pending' },
  encode: (_, result) => encodeJson(skyrlResult(result)),
  failed: ({ error, category }) =>
    json({ detail: category === 'user' ? error : 'Unknown error' }, category === 'user' ? 400 : 500),
  tryAgain: () => json({ detail: 'Timeout waiting for result' }, 408),
  error: ({ status, detail, headers }) => {
    if (status === 500) return text('Internal Server Error', 500);
    if (status !== 422) return json({ detail }, status, headers);
    return json({ detail: detail.split('; ').map((line) => validationError(line)) }, 422, headers);
  },
};

/** FastAPI says where a body is wrong as a path, and what is wrong beside it. */
function validationError(line: string): object {
  const [path = '', message = line] = line.includes(': ') ? line.split(': ', 2) : [];
  return { type: 'value_error', loc: ['body', ...path.split('.').filter((part) => part !== '')], msg: message };
}

function skyrlResult(result: FutureResult): object {
  switch (result.type) {
    case 'json':
      return result.value;
    case 'forward_backward':
      return { ...resultJson(result), loss_fn_output_type: 'scalar', metrics: {} };
    case 'sample': {
      const { sequences, prompt_logprobs: scored } = resultJson(result);
      return {
        sequences,
        // Without the leading null of the hosted service.
        prompt_logprobs: Array.isArray(scored) ? scored.slice(1) : null,
      };
    }
  }
}
