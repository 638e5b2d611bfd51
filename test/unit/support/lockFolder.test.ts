import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockFolder } from '../../../src/support/files/lockFolder.js';

let parent: string;
let folder: string;
let lock: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'tinker-rx-lock-'));
  folder = join(parent, 'run');
  lock = join(folder, 'lock');
});
afterEach(() => rmSync(parent, { recursive: true }));

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const minutesLater = (minutes: number) => () => NOW_MS + minutes * 60_000;
/** Leaves a lock that was last touched at `NOW_MS`. */
const leave = (text: string, file = lock) => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, text);
  utimesSync(file, NOW_MS / 1000, NOW_MS / 1000);
};
const holderOf = () => JSON.parse(readFileSync(lock, 'utf8')) as { pid: number };
/** No system gives this number to a process. */
const NOBODY = 2 ** 30;
const gone = JSON.stringify({ pid: NOBODY, host: hostname() });

describe('lockFolder', () => {
  it('names its process while it holds the folder, and leaves no empty folder', async () => {
    const unlock = await lockFolder(folder);
    expect(holderOf().pid).toBe(process.pid);
    await expect(lockFolder(folder)).rejects.toThrow(
      `${folder} is in use by process ${process.pid}\nWait for it, stop it, or choose another folder.`,
    );
    await unlock();
    expect(existsSync(folder)).toBe(false);
  });

  it('belongs to one of two calls of a process that are made at once', async () => {
    const calls = await Promise.allSettled([lockFolder(folder), lockFolder(folder)]);
    expect(calls.map(({ status }) => status).sort()).toStrictEqual(['fulfilled', 'rejected']);
    for (const call of calls) if (call.status === 'fulfilled') await call.value();
  });

  it('leaves what was written', async () => {
    const unlock = await lockFolder(folder);
    writeFileSync(join(folder, 'config.json'), '{}');
    await unlock();
    expect([existsSync(lock), existsSync(join(folder, 'config.json'))]).toStrictEqual([false, true]);
  });

  it.each([
    ['of a process that is gone', gone, 0],
    ['of a process of the same number, as in a container', JSON.stringify({ pid: process.pid, host: hostname() }), 0],
    ['that was cut off minutes ago', '{"pid": 12', 10],
    ['that has been empty for minutes', '', 10],
    ['of another machine that has not touched it for minutes', JSON.stringify({ pid: 1, host: 'elsewhere' }), 10],
  ])('takes over a lock %s', async (_, text, minutes) => {
    leave(text);
    const unlock = await lockFolder(folder, minutesLater(minutes));
    expect(holderOf().pid).toBe(process.pid);
    await unlock();
    expect(existsSync(lock)).toBe(false);
  });

  it.runIf(existsSync('/proc/self/stat'))('takes over a lock whose number another process has now', async () => {
    leave(JSON.stringify({ pid: process.ppid, host: hostname(), started: '1' }));
    await (
      await lockFolder(folder)
    )();
    expect(existsSync(lock)).toBe(false);
  });

  it('takes over although a process was killed while it did the same', async () => {
    leave(gone);
    leave(gone, `${lock}.removing`);
    await (
      await lockFolder(folder)
    )();
    expect(existsSync(folder)).toBe(false);
  });

  it('waits for a lock that is being written', async () => {
    leave('');
    const waiting = lockFolder(folder, minutesLater(1));
    writeFileSync(lock, JSON.stringify({ pid: process.ppid, host: hostname() }));
    await expect(waiting).rejects.toThrow(`is in use by process ${process.ppid}`);
  });

  it.each([
    ['of a process that lives', JSON.stringify({ pid: process.ppid, host: hostname() }), `process ${process.ppid}`],
    ['that another machine has just touched', JSON.stringify({ pid: 1, host: 'elsewhere' }), 'process 1 on elsewhere'],
  ])('refuses a lock %s', async (_, text, who) => {
    leave(text);
    await expect(lockFolder(folder, minutesLater(1))).rejects.toThrow(`is in use by ${who}`);
  });
});
