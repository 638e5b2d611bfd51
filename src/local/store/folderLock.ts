import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

const LOCK = 'lock';
/** Folders that this process has open; its own number in a lock file may also be that of an earlier process. */
const held = new Set<string>();

/**
 * Claims a data folder for this process. A lock left by a process that is gone is taken over.
 *
 * @returns a function that gives the folder back.
 * @throws Error when a running service has it.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  if (held.has(folder)) throw inUse(folder, process.pid);
  held.add(folder);
  const path = join(folder, LOCK);
  try {
    await claim(path, folder);
  } catch (error) {
    held.delete(folder);
    throw error;
  }
  return async () => {
    await rm(path, { force: true });
    held.delete(folder);
  };
}

async function claim(path: string, folder: string): Promise<void> {
  for (;;) {
    try {
      const handle = await open(path, 'wx');
      await handle.writeFile(String(process.pid));
      await handle.close();
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = Number(await readFile(path, 'utf8').catch(() => ''));
    if (owner !== process.pid && isRunning(owner)) throw inUse(folder, owner);
    await rm(path, { force: true });
  }
}

function isRunning(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const inUse = (folder: string, pid: number): Error => new Error(`${folder} is in use by process ${pid}`);
