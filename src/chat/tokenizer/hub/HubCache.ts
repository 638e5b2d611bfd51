import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { replaceFile } from '../../../support/files/writeAtomically.js';
import { TokenizerError } from '../TokenizerError.js';

/** Whether a revision is a commit, which never moves. */
export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);

/**
 * One repository in the cache that all Hugging Face tools share: blobs by checksum, a folder of links per commit, and for each branch or
 * tag the commit it stood at.
 */
export class HubCache {
  readonly #folder: string;

  constructor(cacheFolder: string, repo: string) {
    if (!/^[\w.-]+(\/[\w.-]+)?$/.test(repo) || repo.includes('..')) {
      throw new TokenizerError(`${JSON.stringify(repo)} is not the name of a repository: expected org/name`);
    }
    this.#folder = join(cacheFolder, `models--${repo.replaceAll('/', '--')}`);
  }

  blobPath(etag: string): string {
    return join(this.#folder, 'blobs', etag);
  }

  snapshotPath(commit: string, file: string): string {
    return join(this.#folder, 'snapshots', commit, file);
  }

  /** The commit that a revision stood at when it was last looked up. */
  async commitOf(revision: string): Promise<string | undefined> {
    if (isCommit(revision)) return revision;
    const text = await readFile(this.#refPath(revision), 'utf8').catch(() => '');
    return isCommit(text.trim()) ? text.trim() : undefined;
  }

  /** Path of a cached file, `null` for one that is known not to exist, undefined for one not looked up yet. */
  async find(revision: string, file: string): Promise<string | null | undefined> {
    const commit = await this.commitOf(revision);
    if (commit === undefined) return undefined;
    const path = this.snapshotPath(commit, file);
    if (existsSync(path)) return path;
    return existsSync(this.#absentPath(commit, file)) ? null : undefined;
  }

  async rememberCommit(revision: string, commit: string): Promise<void> {
    if (revision === commit || (await this.commitOf(revision)) === commit) return;
    await this.#write(this.#refPath(revision), commit);
  }

  async rememberAbsent(commit: string, file: string): Promise<void> {
    await this.#write(this.#absentPath(commit, file), '');
  }

  /** Puts a blob into the folder of a commit: as a relative link, or as a copy if the system allows none. */
  async link(etag: string, commit: string, file: string): Promise<string> {
    const blob = this.blobPath(etag);
    const path = this.snapshotPath(commit, file);
    await mkdir(dirname(path), { recursive: true });
    await rm(path, { force: true });
    await symlink(relative(dirname(path), blob), path).catch(async (error: NodeJS.ErrnoException) => {
      // Another process may have linked it in between, to the same blob.
      if (error.code !== 'EEXIST') await copyFile(blob, path);
    });
    return path;
  }

  #refPath(revision: string): string {
    if (!/^[\w.-]+(\/[\w.-]+)*$/.test(revision) || revision.includes('..')) {
      throw new TokenizerError(`${JSON.stringify(revision)} is not the name of a revision`);
    }
    return join(this.#folder, 'refs', revision);
  }

  #absentPath(commit: string, file: string): string {
    return join(this.#folder, '.no_exist', commit, file);
  }

  /** Readable by other users of the cache. */
  async #write(path: string, content: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await replaceFile(path, content, 0o666);
  }
}
