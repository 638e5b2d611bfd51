import { existsSync } from 'node:fs';
import { defer, finalize, lastValueFrom, merge, Observable, retry, Subject, tap, throwError, timer } from 'rxjs';
import { isTinkerError } from '../../../wire/tinkerError.js';
import { TokenizerError } from '../TokenizerError.js';
import { downloadBlob } from './downloadBlob.js';
import { HubCache, isCommit } from './HubCache.js';
import type { HubEvent } from './HubEvent.js';
import { announce } from './hubEvents.js';
import { fileMetadata } from './hubMetadata.js';
import { HubSettings, type HubOptions } from './HubSettings.js';

interface Job {
  readonly repo: string;
  readonly file: string;
  readonly revision: string;
  readonly settings: HubSettings;
  readonly cache: HubCache;
  readonly signal: AbortSignal;
  readonly emit: (event: HubEvent) => void;
}

/**
 * Brings one file of a Hugging Face repository into the cache, as events.
 *
 * Cold: nothing is asked before subscribe. `file-progress` while bytes arrive, `file-retry` before another try, then `file-ready` or
 * `file-absent`, then it completes; {@link hubEvents$} carries the same events. A cached
 * file of a pinned commit is not looked up again. If the hub refuses or cannot be reached, a cached file of that revision is used;
 * without one it errors with a `TokenizerError`. Unsubscribing stops the download, and a later one continues where it stopped.
 */
export function downloadHubFile(repo: string, file: string, options: HubOptions = {}): Observable<HubEvent> {
  return defer(() => {
    const settings = new HubSettings(options);
    const cache = new HubCache(settings.cacheFolder, repo);
    const { revision = 'main' } = options;
    const once = new Observable<HubEvent>((subscriber) => {
      const abort = new AbortController();
      const emit = (event: HubEvent): void => subscriber.next(event);
      bring({ repo, file, revision, settings, cache, signal: abort.signal, emit }).then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
      return () => abort.abort();
    });
    const retries = new Subject<HubEvent>();
    const delay = (error: unknown, attempt: number): Observable<unknown> => {
      if (!isTinkerError(error) || !error.retryable) return throwError(() => error);
      const delayMs = settings.retryDelayMs * 2 ** (attempt - 1);
      retries.next({ type: 'file-retry', repo, file, attempt, delayMs, reason: error.message });
      return timer(delayMs, settings.scheduler);
    };
    const tries = once.pipe(
      retry({ count: settings.retries, delay }),
      finalize(() => retries.complete()),
    );
    return merge(retries, tries).pipe(tap(announce));
  });
}

/** The path of a file in the cache, fetched if need be; undefined if the repository has no such file. Rejects as `downloadHubFile` errors. */
export async function hubFile(repo: string, file: string, options: HubOptions = {}): Promise<string | undefined> {
  const last = await lastValueFrom(
    downloadHubFile(repo, file, options).pipe(tap((event) => options.onProgress?.(event))),
  );
  return last.type === 'file-ready' ? last.path : undefined;
}

async function bring({ repo, file, revision, settings, cache, signal, emit }: Job): Promise<void> {
  const cached = await cache.find(revision, file);
  const useCached = (): void => {
    if (cached != null) emit({ type: 'file-ready', repo, file, path: cached, cached: true });
    else emit({ type: 'file-absent', repo, file });
  };
  if (cached !== undefined && (settings.offline || isCommit(revision))) return useCached();
  if (settings.offline) {
    throw new TokenizerError(
      `${repo}/${file} is not in the cache at ${settings.cacheFolder}, and HF_HUB_OFFLINE forbids fetching it: load it once online`,
    );
  }
  let metadata: Awaited<ReturnType<typeof fileMetadata>>;
  try {
    metadata = await fileMetadata(repo, file, revision, settings, signal);
  } catch (error) {
    if (cached === undefined || signal.aborted) throw error;
    return useCached();
  }
  if ('absent' in metadata) {
    const { commit } = metadata;
    if (commit !== undefined) {
      await cache.rememberAbsent(commit, file);
      await cache.rememberCommit(revision, commit);
    }
    return emit({ type: 'file-absent', repo, file });
  }
  const { commit, etag } = metadata;
  let path = cache.snapshotPath(commit, file);
  const isThere = existsSync(path);
  if (!isThere) {
    await downloadBlob(metadata, cache.blobPath(etag), settings, signal, (receivedBytes, totalBytes) =>
      emit({ type: 'file-progress', repo, file, receivedBytes, totalBytes }),
    );
    path = await cache.link(etag, commit, file);
  }
  // A cache that cannot be written to still serves what it holds.
  await cache
    .rememberCommit(revision, commit)
    .catch((error: unknown) => (isThere ? undefined : Promise.reject(error as Error)));
  emit({ type: 'file-ready', repo, file, path, cached: isThere });
}
