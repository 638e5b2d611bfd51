import { createHash, randomUUID, type Hash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TokenizerError } from '../TokenizerError.js';
import { openFile, type FileMetadata } from './hubMetadata.js';
import type { HubSettings } from './HubSettings.js';

/** Told after every chunk how many bytes are at hand. */
export type OnBytes = (receivedBytes: number, totalBytes: number | undefined) => void;

/**
 * Fetches a blob to its place in the cache, continuing where an interrupted download stopped.
 *
 * The bytes are checked against the etag before they get their final name. If a resumed file does not match (two processes may have
 * written to it), it is fetched once more from the start under a new name.
 */
export async function downloadBlob(
  metadata: FileMetadata,
  blob: string,
  settings: HubSettings,
  signal: AbortSignal,
  onBytes: OnBytes,
): Promise<void> {
  if (existsSync(blob)) return;
  await mkdir(dirname(blob), { recursive: true });
  const shared = `${blob}.incomplete`;
  const isResumed = existsSync(shared);
  await receive(metadata, shared, settings, signal, onBytes);
  if (await matches(shared, metadata)) return rename(shared, blob);
  await rm(shared, { force: true });
  if (isResumed) {
    const own = `${blob}.${randomUUID()}.incomplete`;
    try {
      await receive(metadata, own, settings, signal, onBytes);
      if (await matches(own, metadata)) return await rename(own, blob);
    } finally {
      await rm(own, { force: true });
    }
  }
  throw new TokenizerError(`what ${new URL(metadata.url).origin} sent does not match its checksum ${metadata.etag}`, {
    retryable: true,
  });
}

async function receive(
  metadata: FileMetadata,
  path: string,
  settings: HubSettings,
  signal: AbortSignal,
  onBytes: OnBytes,
): Promise<void> {
  const at = await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
  if (metadata.size !== undefined && at === metadata.size) return;
  const offset = metadata.size !== undefined && at > metadata.size ? 0 : at;
  const { statusCode, headers, body } = await openFile(metadata, offset, settings, signal);
  if (statusCode !== 200 && statusCode !== 206) {
    await body.dump();
    // 416: the partial file is as long as the whole one, or longer; start over.
    if (statusCode === 416) await rm(path, { force: true });
    const retryable = statusCode === 408 || statusCode === 416 || statusCode === 429 || statusCode >= 500;
    throw new TokenizerError(`${new URL(metadata.url).origin} answers ${statusCode} to a download`, { retryable });
  }
  // A server without ranges sends everything again, with 200.
  let received = statusCode === 206 ? offset : 0;
  const total = metadata.size ?? (Number(headers['content-length']) + received || undefined);
  const file = await open(path, statusCode === 206 ? 'a' : 'w');
  try {
    onBytes(received, total);
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      await file.writeFile(chunk);
      received += chunk.length;
      onBytes(received, total);
    }
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new TokenizerError(`the download broke off after ${received} bytes`, { retryable: true, cause });
  } finally {
    await file.close();
  }
}

/** Whether a file is what its etag says. An etag that is no checksum leaves the size to compare. */
async function matches(path: string, { etag, size: expected }: FileMetadata): Promise<boolean> {
  const { size } = await stat(path);
  if (expected !== undefined && size !== expected) return false;
  const hash = hashFor(etag, size);
  if (hash === undefined) return true;
  for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) hash.update(chunk);
  return hash.digest('hex') === etag;
}

function hashFor(etag: string, size: number): Hash | undefined {
  if (/^[0-9a-f]{64}$/.test(etag)) return createHash('sha256');
  // Git names a blob by the SHA-1 of a header and its content.
  if (/^[0-9a-f]{40}$/.test(etag)) return createHash('sha1').update(`blob ${size}\0`);
  return undefined;
}
