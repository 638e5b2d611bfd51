import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import type { Response } from 'undici';
import { CliError } from '../../CliError.js';
import { explain } from '../../explain.js';
import { failureOf, type Http } from '../../http.js';

export interface FetchFileOptions {
  /** A fresh address for every try. */
  readonly url: () => Promise<string>;
  readonly target: string;
  readonly signal: AbortSignal;
  /** The version that bytes of the target are of, where an earlier command left some. */
  readonly etag: string | undefined;
  readonly onEtag: (etag: string) => void;
  readonly onProgress: (bytes: number, totalBytes: number | undefined) => void;
  /** Told why a try failed, before the next one. */
  readonly onRetry?: (reason: string) => void;
}

const TRIES = 5;

/**
 * Fetches a whole file. Resumes a broken download if the file has not changed since.
 *
 * @returns the headers of the answer, for verifying
 */
export async function fetchFile(http: Http, options: FetchFileOptions): Promise<ReadonlyMap<string, string>> {
  const { target, signal } = options;
  await mkdir(dirname(target), { recursive: true });
  let { etag } = options;
  for (let attempt = 1; ; attempt++) {
    const have = etag === undefined ? 0 : await sizeOf(target);
    const headers = have > 0 ? { range: `bytes=${have}-`, 'if-range': etag! } : {};
    let response: Response | undefined;
    try {
      response = await http.fetch(await options.url(), {
        headers: { 'accept-encoding': 'identity', ...headers },
        signal,
      });
      if (
        response.status === 416 &&
        Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1]) === have
      ) {
        await response.arrayBuffer();
        options.onProgress(have, have);
        return new Map(response.headers);
      }
      if (response.status !== 200 && response.status !== 206) throw await refusal(response);
      const tag = response.headers.get('etag');
      // Only a strong tag promises the same bytes.
      etag = tag?.startsWith('"') === true ? tag : undefined;
      if (etag !== undefined) options.onEtag(etag);
      await save(response, response.status === 206 ? have : 0, options);
      return new Map(response.headers);
    } catch (error) {
      if (signal.aborted || error instanceof CliError || attempt >= TRIES) {
        if (signal.aborted || error instanceof CliError) throw error;
        throw new CliError(`Failed to download: ${failureOf(error)}`, {
          details: 'Run the same command again to continue.',
        });
      }
      if (etag === undefined) await rm(target, { force: true });
      options.onRetry?.(failureOf(error));
      await setTimeout(250 * 2 ** attempt, undefined, { signal });
    }
  }
}

async function save(response: Response, from: number, { target, onProgress, signal }: FetchFileOptions): Promise<void> {
  const length = Number(response.headers.get('content-length') ?? NaN);
  const totalBytes = Number.isNaN(length) ? undefined : from + length;
  let bytes = from;
  const file = createWriteStream(target, from === 0 ? { flags: 'w' } : { flags: 'r+', start: from });
  let unwritten: NodeJS.ErrnoException | undefined;
  file.on('error', (error) => (unwritten = error));
  // Not by `pipeline`: what has arrived before the connection breaks is to be kept, and a destroyed stream drops it.
  try {
    for await (const chunk of response.body! as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (!file.write(chunk)) await once(file, 'drain', { signal });
      onProgress(bytes, totalBytes);
      signal.throwIfAborted();
    }
  } finally {
    file.end();
    await finished(file).catch(() => {});
    // A disk that is full stays full: another try would only fetch the bytes again.
    if (unwritten !== undefined) throw new CliError(explain(Object.assign(unwritten, { path: target })).message);
  }
  if (totalBytes !== undefined && bytes !== totalBytes)
    throw new Error(`the connection ended after ${bytes} of ${totalBytes} bytes`);
}

async function refusal(response: Response): Promise<Error> {
  const text = (await response.text()).slice(0, 200);
  const passing = response.status >= 500 || response.status === 429 || response.status === 408;
  const message = `HTTP ${response.status}${text === '' ? '' : `: ${text}`}`;
  return passing ? new Error(message) : new CliError(`Failed to download: ${message}`);
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );
