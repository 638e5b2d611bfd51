import type { IncomingMessage } from 'node:http';

export interface BodyErrors {
  /** The error for a body of more than `limitBytes`. */
  readonly tooLarge: (limitBytes: number) => Error;
  /** The error for a caller that hangs up before its body is complete. */
  readonly incomplete: () => Error;
}

/**
 * The whole body of a request, as it was sent. Rejects as soon as it is known to be larger than `limitBytes`.
 *
 * By events: reading a small body through an async iterator takes as long as answering it.
 */
export function readBody(request: IncomingMessage, limitBytes: number, errors: BodyErrors): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    const tooLarge = () => {
      request.pause().removeAllListeners('data');
      reject(errors.tooLarge(limitBytes));
    };
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return tooLarge();
    request.on('data', (part: Buffer) => {
      size += part.length;
      if (size > limitBytes) return tooLarge();
      parts.push(part);
    });
    request.once('end', () => resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts, size)));
    request.once('error', reject);
    request.once('close', () => {
      if (!request.complete) reject(errors.incomplete());
    });
  });
}
