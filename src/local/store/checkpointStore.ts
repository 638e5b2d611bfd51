import { createHash, randomBytes } from 'node:crypto';
import { copyFile, link, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseTinkerPath, type CheckpointType, type UserMetadata } from '../../wire/index.js';
import { UserError } from '../queue/failure.js';
import { replaceFile } from '../../support/files/writeAtomically.js';
import { distinctTimes } from './distinctTimes.js';
import { FOLDER_BY_TYPE, tinkerPath, type Manifest, type ManifestFile, type WeightsInfo } from './manifest.js';
import { Mutex } from './mutex.js';
import { checkName, folderOf } from './names.js';
import { clearFolder, MANIFEST, scanCheckpoint, scanCheckpoints } from './scanCheckpoints.js';

export interface NewCheckpoint {
  readonly runId: string;
  readonly type: CheckpointType;
  readonly name: string;
  readonly info: WeightsInfo;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly ttlSeconds?: number | undefined;
  readonly userMetadata?: UserMetadata | undefined;
  readonly overwrite?: boolean;
}

/** Checkpoints on disk, and an index of them in memory. Paths are found in the index, never made from a request. */
export class CheckpointStore {
  readonly #times: () => number;
  readonly #byPath: Map<string, Manifest>;
  readonly #mutex = new Mutex();

  private constructor(
    private readonly root: string,
    private readonly now: () => number,
    manifests: readonly Manifest[],
  ) {
    this.#times = distinctTimes(now);
    this.#byPath = new Map(manifests.map((manifest) => [tinkerPath(manifest), manifest]));
  }

  /** Reads the existing checkpoints and deletes what an interrupted save left behind. */
  static async open(root: string, now: () => number): Promise<CheckpointStore> {
    await mkdir(root, { recursive: true });
    return new CheckpointStore(root, now, await scanCheckpoints(root));
  }

  /** Every checkpoint that has not expired, newest first. Expired ones are deleted on the way. */
  list(runId?: string): Manifest[] {
    this.#removeExpired();
    return [...this.#byPath.values()]
      .filter((manifest) => !this.#expired(manifest) && (runId === undefined || manifest.runId === runId))
      .sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  }

  find(path: string): Manifest | undefined {
    const manifest = this.#byPath.get(path);
    return manifest !== undefined && !this.#expired(manifest) ? manifest : undefined;
  }

  /** The checkpoint of a path in any of its forms. @throws UserError if there is no such checkpoint. */
  require(path: string): Manifest {
    const { trainingRunId, checkpointType, checkpointId } = parseTinkerPath(path);
    const found =
      checkpointType === undefined
        ? this.list(trainingRunId).find(({ name }) => name === checkpointId)
        : this.find(path);
    if (found === undefined) throw new UserError(`there is no checkpoint ${path.slice(0, 300)}`);
    return found;
  }

  /** Expired ones are deleted first. @throws UserError when the name is not allowed or taken and `overwrite` is off. */
  save(checkpoint: NewCheckpoint): Promise<Manifest> {
    const { runId, type, info, ttlSeconds, userMetadata, overwrite = false } = checkpoint;
    const name = checkName(checkpoint.name);
    this.#removeExpired();
    return this.#mutex.run(async () => {
      this.#checkFree({ runId, type, name }, overwrite);
      const folder = await this.#makeFolder({ runId, type, name });
      return this.#undoing(folder, async () => {
        const files = await writeContents(folder, checkpoint.files);
        const created = this.#times();
        return this.#commit({
          version: 1,
          runId,
          type,
          name,
          ...info,
          createdAt: new Date(created).toISOString(),
          public: false,
          ...(ttlSeconds === undefined ? {} : { expiresAt: new Date(created + ttlSeconds * 1000).toISOString() }),
          ...(userMetadata === undefined ? {} : { userMetadata }),
          files,
        });
      });
    });
  }

  /** A copy under another run. It shares the bytes with its source if the file system can. */
  copy(source: Manifest, runId: string, ttlSeconds?: number): Promise<Manifest> {
    return this.#mutex.run(async () => {
      const from = this.#folder(source);
      const copy = { ...source, runId };
      this.#checkFree(copy, false);
      const to = await this.#makeFolder(copy);
      return this.#undoing(to, async () => {
        for (const { stored } of source.files) {
          await link(join(from, stored), join(to, stored)).catch(() => copyFile(join(from, stored), join(to, stored)));
        }
        const { expiresAt: _, ...rest } = copy;
        const created = this.#times();
        return this.#commit({
          ...rest,
          public: false,
          createdAt: new Date(created).toISOString(),
          ...(ttlSeconds === undefined ? {} : { expiresAt: new Date(created + ttlSeconds * 1000).toISOString() }),
        });
      });
    });
  }

  /** The content of every file. @throws Error when the bytes are not those that were written. */
  read(manifest: Manifest): Promise<Map<string, Uint8Array>> {
    return this.#mutex.run(async () => {
      // The checkpoint may have been replaced since the caller looked it up.
      const current = this.#byPath.get(tinkerPath(manifest));
      if (current === undefined) throw new UserError(`checkpoint ${tinkerPath(manifest)} was deleted`);
      const contents = new Map<string, Uint8Array>();
      for (const file of current.files) {
        const content = await readFile(join(this.#folder(current), file.stored));
        if (digest(content) !== file.sha256) throw new Error(`${file.name} of ${tinkerPath(current)} is damaged`);
        contents.set(file.name, content);
      }
      return contents;
    });
  }

  /** Where a file lies and what it holds, for sending it. */
  file(manifest: Manifest, name: string): (ManifestFile & { readonly path: string }) | undefined {
    const file = manifest.files.find((candidate) => candidate.name === name);
    return file === undefined ? undefined : { ...file, path: join(this.#folder(manifest), file.stored) };
  }

  setPublic(manifest: Manifest, isPublic: boolean): Promise<Manifest> {
    return this.#change(manifest, (current) => ({ ...current, public: isPublic }));
  }

  setTtl(manifest: Manifest, ttlSeconds: number | null): Promise<Manifest> {
    return this.#change(manifest, ({ expiresAt: _, ...current }) =>
      ttlSeconds === null ? current : { ...current, expiresAt: new Date(this.now() + ttlSeconds * 1000).toISOString() },
    );
  }

  delete(manifest: Manifest): Promise<void> {
    return this.#mutex.run(() => this.#remove(manifest));
  }

  /** Resolves when everything asked for so far is on disk. */
  flush(): Promise<void> {
    return this.#mutex.run(() => Promise.resolve());
  }

  #change(manifest: Manifest, change: (current: Manifest) => Manifest): Promise<Manifest> {
    return this.#mutex.run(async () => {
      const current = this.#byPath.get(tinkerPath(manifest));
      if (current === undefined) throw new UserError(`checkpoint ${tinkerPath(manifest)} was deleted`);
      return this.#commit(change(current));
    });
  }

  /** From here on the checkpoint is the new one; files only the old one had go away afterwards. */
  async #commit(manifest: Manifest): Promise<Manifest> {
    const path = tinkerPath(manifest);
    const folder = this.#folder(manifest);
    const before = this.#byPath.get(path);
    await replaceFile(join(folder, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    this.#byPath.set(path, manifest);
    const kept = new Set(manifest.files.map(({ stored }) => stored));
    for (const { stored } of before?.files ?? []) {
      if (!kept.has(stored)) await rm(join(folder, stored), { force: true });
    }
    return manifest;
  }

  /** Runs `write`; if it fails, what it left in the folder goes away at once, and not only when the service starts again. */
  async #undoing(folder: string, write: () => Promise<Manifest>): Promise<Manifest> {
    try {
      return await write();
    } catch (error) {
      await scanCheckpoint(folder).catch(() => undefined);
      throw error;
    }
  }

  #removeExpired(): void {
    for (const [path, manifest] of this.#byPath) {
      if (!this.#expired(manifest)) continue;
      const remove = async (): Promise<void> => {
        // Another may have been saved under its name since.
        const current = this.#byPath.get(path);
        if (current !== undefined && this.#expired(current)) await this.#remove(current);
      };
      void this.#mutex.run(remove).catch(() => undefined);
    }
  }

  async #remove(manifest: Manifest): Promise<void> {
    // Without its manifest a checkpoint is gone, whatever happens before the files are.
    if (!this.#byPath.delete(tinkerPath(manifest))) return;
    const folder = this.#folder(manifest);
    await rm(join(folder, MANIFEST), { force: true });
    await clearFolder(folder);
  }

  #checkFree(place: Pick<Manifest, 'runId' | 'type' | 'name'>, overwrite: boolean): void {
    if (this.find(tinkerPath(place)) !== undefined && !overwrite) {
      const hint = place.type === 'training' ? '; ask for overwrite to replace it' : '';
      throw new UserError(`checkpoint ${tinkerPath(place)} exists already${hint}`);
    }
  }

  #folder({ runId, type, name }: Pick<Manifest, 'runId' | 'type' | 'name'>): string {
    return join(this.root, folderOf(runId), FOLDER_BY_TYPE[type], folderOf(name));
  }

  async #makeFolder(place: Pick<Manifest, 'runId' | 'type' | 'name'>): Promise<string> {
    const folder = this.#folder(place);
    await mkdir(folder, { recursive: true });
    return folder;
  }

  #expired({ expiresAt }: Manifest): boolean {
    return expiresAt !== undefined && Date.parse(expiresAt) <= this.now();
  }
}

/** All of them, or none that is still being written when this rejects. */
async function writeContents(folder: string, files: ReadonlyMap<string, Uint8Array>): Promise<ManifestFile[]> {
  const written = await Promise.allSettled(Array.from(files, ([name, content]) => writeContent(folder, name, content)));
  return written.map((file) => {
    if (file.status === 'rejected') throw file.reason as Error;
    return file.value;
  });
}

async function writeContent(folder: string, name: string, content: Uint8Array): Promise<ManifestFile> {
  const stored = `${randomBytes(6).toString('hex')}-${name}`;
  await replaceFile(join(folder, stored), content);
  return { name, stored, sizeBytes: content.byteLength, sha256: digest(content) };
}

const digest = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
