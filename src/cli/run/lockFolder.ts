import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { CliError } from '../CliError.js';

const FILE = 'run.lock';
/** The lock is touched this often, so that another machine can tell whether its holder lives. */
const TOUCH_MS = 30_000;
/** A lock of another machine that was not touched for this long is left over. */
const STALE_MS = 4 * TOUCH_MS;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, as the system counts: a number that is used again means another process. */
  readonly started?: string;
}

/** Folders that this process holds. */
const held = new Set<string>();

/**
 * Takes a folder for this process; gives what frees it. A lock that a killed process left behind is taken over.
 *
 * @throws CliError where another process holds the folder
 */
export function lockFolder(folder: string, nowMs: number): () => void {
  const place = resolve(folder);
  const file = join(folder, FILE);
  const mine: Holder = { pid: process.pid, host: hostname(), ...startOf(process.pid) };
  mkdirSync(folder, { recursive: true });
  while (!create(file, mine)) {
    const holder = readHolder(file);
    if (holder === undefined) continue;
    if (held.has(place) || isAlive(holder, file, nowMs)) throw inUse(folder, file, holder);
    takeAway(file, holder, mine.pid);
  }
  held.add(place);
  const touching = setInterval(() => touch(file), TOUCH_MS).unref();
  return () => {
    clearInterval(touching);
    held.delete(place);
    rmSync(file, { force: true });
    // A run that did not begin leaves no folder.
    if (readdirSync(folder).length === 0) rmdirSync(folder);
  };
}

/** Whether the file was made: it is the one thing that only one of several processes can do. */
function create(file: string, holder: Holder): boolean {
  try {
    writeFileSync(file, JSON.stringify(holder), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Undefined where the lock has just been freed. A lock that cannot be read is nobody's. */
function readHolder(file: string): Holder | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { pid, host, started } = JSON.parse(text) as Partial<Holder>;
    if (typeof pid === 'number' && typeof host === 'string')
      return { pid, host, ...(started === undefined ? {} : { started }) };
  } catch {
    // Told below.
  }
  return { pid: 0, host: hostname() };
}

function isAlive({ pid, host, started }: Holder, file: string, nowMs: number): boolean {
  if (host !== hostname()) {
    const touchedMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    return touchedMs !== undefined && nowMs - touchedMs < STALE_MS;
  }
  // This process does not hold it, so it is left over from one of the same number, as in a container.
  if (pid <= 0 || pid === process.pid) return false;
  const now = startOf(pid).started;
  if (started !== undefined && now !== undefined && started !== now) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes a lock that is left over. If another process was quicker, its lock is put back. */
function takeAway(file: string, stale: Holder, pid: number): void {
  const aside = `${file}.${pid}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const found = readHolder(aside);
  if (found !== undefined && (found.pid !== stale.pid || found.host !== stale.host)) linkSync(aside, file);
  rmSync(aside, { force: true });
}

/** On Linux; elsewhere the number of the process has to do. */
function startOf(pid: number): { readonly started?: string } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return started === undefined ? {} : { started };
  } catch {
    return {};
  }
}

function touch(file: string): void {
  const now = new Date();
  try {
    utimesSync(file, now, now);
  } catch {
    // Another machine may not know that this run lives; the run itself needs no lock file.
  }
}

const inUse = (folder: string, file: string, { pid, host }: Holder): CliError =>
  new CliError(`${folder} is in use by process ${pid}${host === hostname() ? '' : ` on ${host}`}`, {
    details: `Wait for it, stop it, or choose another folder. If no such run exists, delete ${file}.`,
  });
