import { readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isTemporary } from '../../support/files/writeAtomically.js';
import { FOLDER_BY_TYPE, isManifest, type Manifest } from './manifest.js';
import { parseJson } from '../../support/parseJson.js';

export const MANIFEST = 'manifest.json';

/** The name of a file that a checkpoint store has written: twelve random digits stand before the true name. */
const isStored = (name: string): boolean => /^[0-9a-f]{12}-/.test(name) || isTemporary(name);

/**
 * Reads the manifests below a folder. What a save that was cut short left behind, and replaced files that were not yet removed,
 * are deleted. What this store has not written is left alone, and so is a manifest that cannot be read.
 */
export async function scanCheckpoints(root: string): Promise<Manifest[]> {
  const found: Manifest[] = [];
  for (const run of await folders(root)) {
    for (const type of Object.values(FOLDER_BY_TYPE)) {
      for (const name of await folders(join(root, run, type))) {
        const manifest = await scanCheckpoint(join(root, run, type, name));
        if (manifest !== undefined) found.push(manifest);
      }
    }
  }
  return found;
}

/** As {@link scanCheckpoints}, for the folder of one checkpoint. */
export async function scanCheckpoint(folder: string): Promise<Manifest | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, MANIFEST), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await clearFolder(folder);
    return undefined;
  }
  const manifest = parseJson(text);
  if (!isManifest(manifest)) return undefined;
  const names = await readdir(folder);
  const expected = new Set(manifest.files.map(({ stored }) => stored));
  for (const name of names) {
    if (isStored(name) && !expected.has(name)) await rm(join(folder, name), { force: true });
  }
  return manifest.files.every(({ stored }) => names.includes(stored)) ? manifest : undefined;
}

/** Removes the files that a checkpoint store has written to a folder, and the folder if nothing else is in it. */
export async function clearFolder(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isFile() && (isStored(entry.name) || entry.name === MANIFEST)) {
      await rm(join(folder, entry.name), { force: true });
    }
  }
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  });
}

async function folders(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
