import { createHash, type BinaryToTextEncoding } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** The digest of a file, read a piece at a time. */
export async function fileDigest(path: string, algorithm: string, encoding: BinaryToTextEncoding): Promise<string> {
  const hash = createHash(algorithm);
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest(encoding);
}
