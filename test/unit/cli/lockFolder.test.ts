import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockFolder } from '../../../src/cli/run/lockFolder.js';

let parent: string;
let folder: string;
let lock: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'tinker-rx-lock-'));
  folder = join(parent, 'run');
  lock = join(folder, 'run.lock');
});
afterEach(() => rmSync(parent, { recursive: true }));

const leave = (text: string) => {
  mkdirSync(folder);
  writeFileSync(lock, text);
};
const holderOf = () => JSON.parse(readFileSync(lock, 'utf8')) as { pid: number };
/** No system gives this number to a process. */
const NOBODY = 2 ** 30;

describe('lockFolder', () => {
  it('names its process while it holds the folder, and leaves no folder where no run began', () => {
    const unlock = lockFolder(folder, Date.now());
    expect(holderOf().pid).toBe(process.pid);
    expect(() => lockFolder(folder, Date.now())).toThrow(`${folder} is in use by process ${process.pid}`);
    unlock();
    expect(existsSync(folder)).toBe(false);
  });

  it('leaves what a run has written', () => {
    const unlock = lockFolder(folder, Date.now());
    writeFileSync(join(folder, 'config.json'), '{}');
    unlock();
    expect([existsSync(lock), existsSync(join(folder, 'config.json'))]).toStrictEqual([false, true]);
  });

  it.each([
    ['of a process that is gone', JSON.stringify({ pid: NOBODY, host: hostname() })],
    ['of a process of the same number, as in a container', JSON.stringify({ pid: process.pid, host: hostname() })],
    ['that was cut off', '{"pid": 12'],
    ['that is empty', ''],
  ])('takes over a lock %s', (_, text) => {
    leave(text);
    lockFolder(folder, Date.now())();
    expect(existsSync(lock)).toBe(false);
  });

  it.runIf(existsSync('/proc/self/stat'))('takes over a lock whose number another process has now', () => {
    leave(JSON.stringify({ pid: process.ppid, host: hostname(), started: '1' }));
    lockFolder(folder, Date.now())();
    expect(existsSync(lock)).toBe(false);
  });

  it('refuses a lock of a process that lives', () => {
    leave(JSON.stringify({ pid: process.ppid, host: hostname() }));
    expect(() => lockFolder(folder, Date.now())).toThrow(`is in use by process ${process.ppid}`);
  });

  it('takes over a lock of another machine once that has not touched it for minutes', () => {
    leave(JSON.stringify({ pid: 1, host: 'elsewhere' }));
    const nowMs = Date.now();
    utimesSync(lock, nowMs / 1000, nowMs / 1000);
    expect(() => lockFolder(folder, nowMs + 60_000)).toThrow('is in use by process 1 on elsewhere');
    lockFolder(folder, nowMs + 600_000)();
    expect(existsSync(lock)).toBe(false);
  });
});
