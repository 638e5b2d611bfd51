import { request, type Dispatcher } from 'undici';
import { TokenizerError } from '../TokenizerError.js';
import { isCommit } from './HubCache.js';
import type { HubSettings } from './HubSettings.js';

/** Where a file of a repository is and how to check it. */
export interface FileMetadata {
  readonly commit: string;
  /** Checksum: SHA-256 of a large file, git's blob SHA-1 of a small one. */
  readonly etag: string;
  readonly size: number | undefined;
  readonly url: string;
}

/** A file that the repository does not have, at a known commit. */
export interface AbsentFile {
  readonly commit: string | undefined;
  readonly absent: true;
}

type Headers = Record<string, string | string[] | undefined>;

const MAX_REDIRECTS = 5;
const isRedirect = (status: number): boolean => status >= 300 && status < 400 && status !== 304;
const header = (headers: Headers, name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
};

/** Sends a request; a failed connection becomes a retryable TokenizerError. */
async function send(
  url: string,
  settings: HubSettings,
  options: { readonly method: 'GET' | 'HEAD'; readonly signal: AbortSignal; readonly headers?: Record<string, string> },
): Promise<Dispatcher.ResponseData> {
  try {
    return await request(url, {
      method: options.method,
      headers: { ...settings.headersFor(url), ...options.headers },
      signal: options.signal,
      headersTimeout: settings.headersTimeoutMs,
      bodyTimeout: settings.bodyTimeoutMs,
      ...(settings.dispatcher === undefined ? {} : { dispatcher: settings.dispatcher }),
    });
  } catch (cause) {
    if (options.signal.aborted) throw cause;
    const { message } = cause as Error;
    throw new TokenizerError(
      `cannot reach ${new URL(url).origin} (${message}): set HF_ENDPOINT to a mirror, or put the files into a folder and load that`,
      { retryable: true, cause },
    );
  }
}

/** Looks a file up. Rejects with a TokenizerError that says what to do if the hub refuses. */
export async function fileMetadata(
  repo: string,
  file: string,
  revision: string,
  settings: HubSettings,
  signal: AbortSignal,
): Promise<FileMetadata | AbsentFile> {
  let url = `${settings.endpoint}/${repo}/resolve/${encodeURIComponent(revision)}/${file}`;
  let commit: string | undefined;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const { statusCode, headers, body } = await send(url, settings, { method: 'HEAD', signal });
    await body.dump();
    commit = header(headers, 'x-repo-commit') ?? commit;
    // Both become names of files and folders: anything else could lead out of the cache.
    if (commit !== undefined && !isCommit(commit)) throw notAHub(settings);
    if (header(headers, 'x-error-code') === 'EntryNotFound') return { commit, absent: true };
    if (statusCode >= 400) throw refusal(repo, revision, statusCode, headers, settings);
    const location = header(headers, 'location');
    // A relative redirect is the hub's own (a renamed repository); an absolute one leads to its storage.
    if (isRedirect(statusCode) && location?.startsWith('/')) {
      url = new URL(location, url).href;
      continue;
    }
    const etag = (header(headers, 'x-linked-etag') ?? header(headers, 'etag'))?.replace(/^W\//, '').replaceAll('"', '');
    if (commit === undefined || etag === undefined || !/^[\w-][\w.-]*$/.test(etag)) throw notAHub(settings);
    const size =
      header(headers, 'x-linked-size') ?? (isRedirect(statusCode) ? undefined : header(headers, 'content-length'));
    return { commit, etag, size: size === undefined ? undefined : Number(size), url: location ?? url };
  }
  throw new TokenizerError(`${settings.endpoint} redirects ${repo}/${file} in circles`);
}

const notAHub = ({ endpoint }: HubSettings): TokenizerError =>
  new TokenizerError(`${endpoint} does not answer like a Hugging Face hub: is HF_ENDPOINT right?`);

function refusal(
  repo: string,
  revision: string,
  status: number,
  headers: Headers,
  { endpoint }: HubSettings,
): TokenizerError {
  const code = header(headers, 'x-error-code');
  if (code === 'GatedRepo') {
    return new TokenizerError(`${repo} is gated: accept its terms at ${endpoint}/${repo} and set HF_TOKEN`);
  }
  if (code === 'RevisionNotFound') return new TokenizerError(`${repo} has no revision ${revision}`);
  if (code === 'RepoNotFound' || status === 401 || status === 403 || status === 404) {
    return new TokenizerError(
      `${repo} is not at ${endpoint}, or it is private: check the name, and set HF_TOKEN if it is yours`,
    );
  }
  const retryable = status === 408 || status === 429 || status >= 500;
  return new TokenizerError(`${endpoint} answers ${status} for ${repo}`, { retryable });
}

/** Follows redirects to the bytes of a file, with the token only where it belongs. */
export async function openFile(
  metadata: FileMetadata,
  offset: number,
  settings: HubSettings,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const headers: Record<string, string> = offset > 0 ? { range: `bytes=${offset}-` } : {};
  let { url } = metadata;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const response = await send(url, settings, { method: 'GET', signal, headers });
    const location = header(response.headers, 'location');
    if (!isRedirect(response.statusCode) || location === undefined) return response;
    await response.body.dump();
    url = new URL(location, url).href;
  }
  throw new TokenizerError(`${new URL(metadata.url).origin} redirects in circles`);
}
