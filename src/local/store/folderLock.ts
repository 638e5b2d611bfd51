import { randomBytes } from 'node:crypto';
import { readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Files that claim the folder hold the number of their process. */
const CLAIM = /^lock(-[0-9a-f]{12})?$/;
/** Folders that this process has open; its own number in a claim may also be that of an earlier process. */
const held = new Set<string>();

/**
 * Claims a data folder for this process. The claim of a process that is gone is removed.
 *
 * Each process first writes its claim and then reads the others: of two that start at the same moment, at least one sees the other and gives up, so there are never two owners. Both may give up.
 *
 * @returns a function that gives the folder back.
 * @throws Error when a running service has it.
 */
export async function lockFolder(path: string): Promise<() => Promise<void>> {
  const folder = await realpath(path);
  if (held.has(folder)) throw inUse(folder, process.pid);
  held.add(folder);
  const own = `lock-${randomBytes(6).toString('hex')}`;
  const leave = async () => {
    await rm(join(folder, own), { force: true });
    held.delete(folder);
  };
  try {
    await writeFile(join(folder, own), String(process.pid), { flag: 'wx' });
    await removeStale(folder, own);
  } catch (error) {
    await leave();
    throw error;
  }
  return leave;
}

/** @throws Error for a claim whose process is running. */
async function removeStale(folder: string, own: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name === own || !CLAIM.test(name)) continue;
    const path = join(folder, name);
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    // An empty claim was made a moment ago, by a process that is running.
    const owner = text === '' ? undefined : Number(text);
    if (owner === undefined || (owner !== process.pid && isRunning(owner))) throw inUse(folder, owner);
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

const inUse = (folder: string, pid: number | undefined): Error =>
  new Error(`${folder} is in use by ${pid === undefined ? 'another process' : `process ${pid}`}`);
