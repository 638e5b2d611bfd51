import type { IncomingMessage } from 'node:http';
import { GatewayError } from './GatewayError.js';
import { refuseCostlyJson } from './refuseCostlyJson.js';

/** The body of a request. @throws GatewayError 413 for one that is too large, 400 for one that is no JSON */
export async function readJson(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const body = await readBody(request, limitBytes);
  refuseCostlyJson(body);
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new GatewayError(400, 'the body is not JSON');
  }
}

/** By events: reading a small body through an async iterator takes as long as answering it. */
function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    const tooLarge = () => {
      request.pause().removeAllListeners('data');
      reject(new GatewayError(413, `the body is larger than ${limitBytes} bytes`));
    };
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return tooLarge();
    request.on('data', (part: Buffer) => {
      size += part.length;
      if (size > limitBytes) return tooLarge();
      parts.push(part);
    });
    request.once('end', () => resolve(Buffer.concat(parts, size)));
    request.once('error', reject);
    // A caller that hangs up in the middle of its body: there is nobody to answer.
    request.once('close', () => {
      if (!request.complete) reject(new GatewayError(400, 'the body is not complete'));
    });
  });
}
