import { mkdir, readFile, realpath, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseJson } from '../parseJson.js';

/** The lock is touched this often, so that another machine can tell whether its holder lives. */
const TOUCH_MS = 30_000;
/** A lock that was not touched for this long is left over, where nothing else says whether its holder lives. */
const STALE_MS = 4 * TOUCH_MS;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, as the system counts: a number that is used again means another process. Linux only. */
  readonly started?: string | undefined;
}

/** Folders that this process holds; its own number in a lock may also be that of an earlier process. */
const held = new Set<string>();

/**
 * Takes a folder for this process, and makes it if need be. A lock that a killed process left behind is taken over.
 *
 * @returns a function that gives the folder back, and removes it if it is empty.
 * @throws Error if another process holds the folder.
 */
export async function lockFolder(path: string, now: () => number = Date.now): Promise<() => Promise<void>> {
  await mkdir(path, { recursive: true });
  const folder = await realpath(path);
  const lock = join(folder, 'lock');
  const mine: Holder = { pid: process.pid, host: hostname(), started: await startOf(process.pid) };
  if (held.has(folder)) throw inUse(path, lock, mine);
  held.add(folder);
  try {
    while (!(await create(lock, mine))) {
      const holder = await holderOf(lock, now);
      if (typeof holder === 'object') throw inUse(path, lock, holder);
      if (holder === 'gone') await removeStale(lock, mine, now);
      else await pause(5);
    }
  } catch (error) {
    held.delete(folder);
    throw error;
  }
  const touching = setInterval(() => {
    const time = new Date();
    // Without it another machine may take this process for gone; the process itself needs no lock.
    utimes(lock, time, time).catch(() => undefined);
  }, TOUCH_MS).unref();
  return async () => {
    clearInterval(touching);
    await rm(lock, { force: true });
    held.delete(folder);
    await rmdir(folder).catch(() => undefined);
  };
}

/** Whether the file was made: it is the one thing that only one of several processes can do. */
const create = (file: string, holder: Holder): Promise<boolean> =>
  writeFile(file, JSON.stringify(holder), { flag: 'wx' }).then(
    () => true,
    (error: NodeJS.ErrnoException) => (error.code === 'EEXIST' ? false : Promise.reject(error)),
  );

/** One process at a time removes a lock that is left over, so that none removes the lock of the one that took it over. */
async function removeStale(lock: string, mine: Holder, now: () => number): Promise<void> {
  const guard = `${lock}.removing`;
  if (await create(guard, mine)) {
    if ((await holderOf(lock, now)) === 'gone') await rm(lock, { force: true });
    await rm(guard, { force: true });
  } else if ((await holderOf(guard, now)) === 'gone') await rm(guard, { force: true });
  else await pause(5);
}

/** The process that holds a lock; `gone` if it does not live, `unknown` if the lock is just being written or freed. */
async function holderOf(lock: string, now: () => number): Promise<Holder | 'gone' | 'unknown'> {
  const text = await readFile(lock, 'utf8').catch(() => undefined);
  const touchedMs = await stat(lock).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );
  if (text === undefined || touchedMs === undefined) return 'unknown';
  const isFresh = now() - touchedMs < STALE_MS;
  const holder = parse(text);
  if (holder === undefined) return isFresh ? 'unknown' : 'gone';
  const { pid, host, started } = holder;
  if (host !== hostname()) return isFresh ? holder : 'gone';
  // This process does not hold it, so it is left over from one of the same number, as in a container.
  if (pid === process.pid) return 'gone';
  const since = await startOf(pid);
  if (started !== undefined && since !== undefined && started !== since) return 'gone';
  try {
    process.kill(pid, 0);
    return holder;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? holder : 'gone';
  }
}

function parse(text: string): Holder | undefined {
  const holder = parseJson(text) as Partial<Holder> | null | undefined;
  return typeof holder?.pid === 'number' && typeof holder.host === 'string' ? (holder as Holder) : undefined;
}

/** On Linux; elsewhere the number of the process has to do. */
async function startOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
}

const inUse = (folder: string, lock: string, { pid, host }: Holder): Error =>
  new Error(
    `${folder} is in use by process ${pid}${host === hostname() ? '' : ` on ${host}`}\n` +
      `Wait for it, stop it, or choose another folder. If no such process exists, delete ${lock}.`,
  );
