import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FOLDER_BY_TYPE, isManifest, type Manifest } from './manifest.js';

export const MANIFEST = 'manifest.json';

/**
 * Reads the manifests below a folder. What no manifest names (files of a save that was cut short, replaced files that
 * were not yet removed, folders without a manifest) is deleted. A manifest that cannot be read is left alone.
 */
export async function scanCheckpoints(root: string): Promise<Manifest[]> {
  const found: Manifest[] = [];
  for (const run of await folders(root)) {
    for (const type of Object.values(FOLDER_BY_TYPE)) {
      for (const name of await folders(join(root, run, type))) {
        const manifest = await readCheckpoint(join(root, run, type, name));
        if (manifest !== undefined) found.push(manifest);
      }
    }
  }
  return found;
}

async function readCheckpoint(folder: string): Promise<Manifest | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, MANIFEST), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
  const manifest = parse(text);
  if (!isManifest(manifest)) return undefined;
  const names = await readdir(folder);
  const expected = new Set([MANIFEST, ...manifest.files.map(({ stored }) => stored)]);
  for (const name of names) if (!expected.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  return manifest.files.every(({ stored }) => names.includes(stored)) ? manifest : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
