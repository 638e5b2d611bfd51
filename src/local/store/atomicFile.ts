import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

const TEMPORARY = '.tmp-';

/** Whether a file name is one that an interrupted {@link writeAtomically} may have left behind. */
export const isTemporary = (name: string): boolean => /^\.tmp-[0-9a-f]{12}-/.test(name);

/**
 * Replaces a file so that a reader, or a process started after a crash at any moment, sees the old content or the new,
 * never a part of it.
 */
export async function writeAtomically(path: string, content: Uint8Array | string): Promise<void> {
  const temporary = join(dirname(path), `${TEMPORARY}${randomBytes(6).toString('hex')}-${basename(path)}`);
  try {
    const handle = await open(temporary, 'wx', 0o600);
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
