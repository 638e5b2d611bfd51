import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeState, encodeState } from '../engine/files/checkpoint.js';
import type { ModelState } from '../engine/types.js';
import { UserError } from '../queue/failure.js';
import { isTemporary, replaceFile } from '../../support/files/writeAtomically.js';

const OURS = /^[0-9a-f]{24}\.safetensors$/;

/**
 * Weights of samplers without a name. On disk, so that many of them cost no memory; gone when the service stops. Only the most
 * recently used are kept, so that they cannot fill the disk.
 */
export class EphemeralStates {
  /** How many samples need the weights now, by id; the least recently used first. */
  readonly #kept = new Map<string, number>();

  private constructor(
    private readonly folder: string,
    private readonly most: number,
  ) {}

  /** Removes what an earlier process left, and nothing that is not of this kind. */
  static async open(folder: string, most: number): Promise<EphemeralStates> {
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(folder)) {
      if (OURS.test(name) || isTemporary(name)) await rm(join(folder, name), { force: true });
    }
    return new EphemeralStates(folder, most);
  }

  /** Writes the weights and gives a function that reads them again. */
  async keep(id: string, state: ModelState): Promise<() => Promise<ModelState>> {
    const path = this.#path(id);
    await replaceFile(path, encodeState(state));
    this.#kept.set(id, 0);
    await this.#dropOldest();
    return async () => {
      if (!this.#kept.has(id)) {
        throw new UserError(
          `the weights of sampler ${id} were dropped: of the samplers without a name, the ${this.most} that were used last are kept. ` +
            'Save weights under a name to keep them',
        );
      }
      return decodeState(await readFile(path));
    };
  }

  /** Marks weights as used last; they are kept at least until the returned function is called. Other ids are fine. */
  use(id: string): () => void {
    const users = this.#kept.get(id);
    if (users === undefined) return () => undefined;
    this.#kept.delete(id);
    this.#kept.set(id, users + 1);
    return () => {
      const left = this.#kept.get(id);
      if (left !== undefined) this.#kept.set(id, left - 1);
    };
  }

  async forget(id: string): Promise<void> {
    this.#kept.delete(id);
    await rm(this.#path(id), { force: true });
  }

  async #dropOldest(): Promise<void> {
    for (const [id, users] of this.#kept) {
      if (this.#kept.size <= this.most) return;
      if (users === 0) await this.forget(id);
    }
  }

  #path(id: string): string {
    return join(this.folder, `${createHash('sha256').update(id).digest('hex').slice(0, 24)}.safetensors`);
  }
}
