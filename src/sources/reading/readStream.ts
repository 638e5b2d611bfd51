import type { Readable } from 'node:stream';
import { messageOf } from '../../support/messageOf.js';
import { SourceError } from '../SourceError.js';

/** The bytes of a stream that somebody else has opened, in order; keeps the count. `name` is for messages. */
export async function* readStream(
  name: string,
  input: Readable,
  signal: AbortSignal,
  count: { bytes: number },
): AsyncGenerator<Buffer> {
  // Waiting for a terminal can take forever: unsubscribing must not have to wait for the next line.
  const stop = () => input.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of input as AsyncIterable<Buffer | string>) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      count.bytes += bytes.length;
      yield bytes;
    }
  } catch (cause) {
    throw new SourceError(name, messageOf(cause), { cause });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
