import type { IncomingMessage } from 'node:http';
import { jsonShape } from '../../support/http/jsonShape.js';
import { readBody } from '../../support/http/readBody.js';
import { GatewayError } from './GatewayError.js';

/** The body of a request. @throws GatewayError 413 for one that is too large, 400 for one that is not JSON */
export async function readJson(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const body = await readBody(request, limitBytes, BODY_ERRORS);
  refuseCostlyJson(body);
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new GatewayError(400, 'the body is not JSON');
  }
}

const BODY_ERRORS = {
  tooLarge: (limitBytes: number) => new GatewayError(413, `the body is larger than ${limitBytes} bytes`),
  incomplete: () => new GatewayError(400, 'the body is not complete'),
};

const MOST = { containers: 65_536, values: 1_000_000, depth: 256 };

/** Refuses JSON that takes long to parse. @throws GatewayError 413 */
function refuseCostlyJson(body: Uint8Array): void {
  const { depth, containers, values } = jsonShape(body, MOST) ?? { depth: 0, containers: 0, values: 0 };
  if (depth > MOST.depth) throw new GatewayError(413, `the body is nested more than ${MOST.depth} levels deep`);
  if (containers > MOST.containers || values > MOST.values) {
    throw new GatewayError(413, `the body has more than ${MOST.containers} lists and objects or ${MOST.values} values`);
  }
}
