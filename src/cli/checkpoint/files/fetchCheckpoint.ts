import { existsSync, lstatSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RestClient } from '../../../client/RestClient.js';
import { byteBar } from '../../terminal/byteBar.js';
import { CliError } from '../../CliError.js';
import { note, type Context } from '../../context.js';
import { withHttp } from '../../http.js';
import { waitFor } from '../../terminal/waitFor.js';
import { fetchFile } from './fetchFile.js';
import { safeTarget } from './safeTarget.js';
import { verifyFile } from './verifyFile.js';
import { parseJson } from '../../../support/parseJson.js';

const RENEW_BEFORE_MS = 5 * 60_000;
const TAGS = '.tinker-rx-download.json';

export interface FetchCheckpointOptions {
  /** Path of exported weights. */
  readonly path: string;
  /** The folder that is there when all files are, and not before. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** Called when addresses are signed, so that an export that expires outlives them. */
  readonly onSigned?: () => PromiseLike<unknown>;
}

/** Fetches every file of exported weights, verified; gives how many bytes they are. */
export async function fetchCheckpoint(
  context: Context,
  rest: RestClient,
  options: FetchCheckpointOptions,
): Promise<number> {
  const { path, folder, signal, onSigned } = options;
  const partial = `${folder}.partial`;
  const sign = async () => {
    const answer = await waitFor(context, 'asking for the files', rest.getExternalWeightsUrls(path), rest.events$);
    await onSigned?.();
    return answer;
  };
  let signed = await sign();
  const names = Object.keys(signed.urls).sort();
  if (names.length === 0) throw new CliError(`The checkpoint has no files: ${path}`);
  // Somebody else may have put a link there, and files would be written where it leads.
  if (lstatSync(partial, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw new CliError(`${partial} is a link`, { details: 'Files are downloaded there first. Remove the link.' });
  await mkdir(partial, { recursive: true });
  // All names are looked at before the first byte is written.
  const targets = names.map((name) => [name, safeTarget(partial, name)] as const);
  const tags = await readTags(join(partial, TAGS));
  let total = 0;
  await withHttp(async (http) => {
    for (const [name, target] of targets) {
      const bar = byteBar(context, name);
      let bytes = 0;
      const headers = await fetchFile(http, {
        target,
        signal,
        etag: existsSync(target) ? tags[name] : undefined,
        url: async () => {
          if (Date.parse(signed.expires) - context.now() < RENEW_BEFORE_MS) signed = await sign();
          const url = signed.urls[name];
          if (url === undefined) throw new CliError(`${name} is no longer part of the checkpoint`);
          return url;
        },
        onEtag: (etag) => {
          tags[name] = etag;
          void writeFile(join(partial, TAGS), JSON.stringify(tags)).catch(() => {});
        },
        onProgress: (done, all) => {
          bytes = done;
          bar.update(done, all);
        },
        onRetry: (reason) => note(context, `${name}: ${reason}; trying again`),
      }).finally(() => bar.end());
      const verified = verifyFile(target, name, headers);
      await waitFor(context, `verifying ${name}`, verified).catch(async (error: unknown) => {
        // Ctrl-C says nothing about the file.
        if (!signal.aborted) await rm(target, { force: true });
        throw error;
      });
      total += bytes;
    }
  });
  await rm(join(partial, TAGS), { force: true });
  await rename(partial, folder);
  return total;
}

const readTags = async (path: string): Promise<Record<string, string>> =>
  parseJson(await readFile(path, 'utf8').catch(() => ''), {}) as Record<string, string>;
