import type { IncomingMessage } from 'node:http';
import { readBody } from '../../support/http/readBody.js';
import { GatewayError } from './GatewayError.js';
import { refuseCostlyJson } from './refuseCostlyJson.js';

/** The body of a request. @throws GatewayError 413 for one that is too large, 400 for one that is no JSON */
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
