import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { namingFile } from './namingFile.js';

/** Whether a file name is one that an interrupted write may have left behind. */
export const isTemporary = (name: string): boolean => /^\.tmp-[0-9a-f]{12}-/.test(name);

const temporaryFor = (path: string): string =>
  join(dirname(path), `.tmp-${randomBytes(6).toString('hex')}-${basename(path)}`);

/** Replaces a file: a reader, also after a crash, finds the old text or the new one, never a part. */
export function writeAtomically(path: string, text: string): void {
  const temporary = temporaryFor(path);
  try {
    const descriptor = openSync(temporary, 'wx');
    try {
      namingFile(path, () => {
        writeFileSync(descriptor, text);
        fsyncSync(descriptor);
      });
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The same without blocking. The rename itself is on the disk when this resolves. */
export async function replaceFile(path: string, content: Uint8Array | string, mode = 0o600): Promise<void> {
  const temporary = temporaryFor(path);
  try {
    const handle = await open(temporary, 'wx', mode);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Makes renames in a folder durable; a system that cannot open folders (Windows) does without. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EISDIR' && code !== 'EPERM' && code !== 'EACCES' && code !== 'EINVAL') throw error;
  }
}
