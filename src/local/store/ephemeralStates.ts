import { createHash } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeState, encodeState } from '../engine/files/checkpoint.js';
import type { ModelState } from '../engine/types.js';
import { writeAtomically } from './atomicFile.js';

/** Weights of samplers without a name. On disk, so that many of them cost no memory; gone when the service stops. */
export class EphemeralStates {
  private constructor(private readonly folder: string) {}

  static async open(folder: string): Promise<EphemeralStates> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    return new EphemeralStates(folder);
  }

  /** Writes the weights and gives a function that reads them again. */
  async keep(id: string, state: ModelState): Promise<() => Promise<ModelState>> {
    const path = this.#path(id);
    await writeAtomically(path, encodeState(state));
    return async () => decodeState(await readFile(path));
  }

  async forget(id: string): Promise<void> {
    await rm(this.#path(id), { force: true });
  }

  #path(id: string): string {
    return join(this.folder, `${createHash('sha256').update(id).digest('hex').slice(0, 24)}.safetensors`);
  }
}
