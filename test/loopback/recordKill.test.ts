/** Several processes record into one file, one is killed, and another opens the file meanwhile. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { lastValueFrom, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import { fromRecorded } from '../../src/sources/index.js';

const CALLS = 150;

it('lines of several processes are whole and complete, also where one is killed and others open the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'record-kill-'));
  const [script, file] = [join(folder, 'child.mjs'), join(folder, 'calls.jsonl')];
  try {
    const bundle = await rolldown({
      input: fileURLToPath(new URL('recordKillChild.ts', import.meta.url)),
      platform: 'node',
      logLevel: 'silent',
    });
    await bundle.write({ file: script, format: 'esm', codeSplitting: false });
    await bundle.close();
    const child = (name: string, count: number, mode = 'write') => {
      const stdio = ['ignore', 'pipe', 'inherit'] as const;
      const started = spawn(process.execPath, [script, file, name, String(count), mode], { stdio: [...stdio] });
      const ended = new Promise<number | string>((resolve) =>
        started.on('close', (code, signal) => resolve(code ?? signal!)),
      );
      return { started, ended };
    };
    const killed = child('killed', 1_000_000);
    killed.started.stdout.once('data', () => killed.started.kill('SIGKILL'));
    const others = [child('a', CALLS), child('b', CALLS), child('opening', 1000, 'open')];
    expect(await Promise.all([killed, ...others].map(({ ended }) => ended))).toStrictEqual(['SIGKILL', 0, 0, 0]);

    const calls = await lastValueFrom(fromRecorded(file, { as: 'calls' }).pipe(toArray()));
    const of = (name: string) => calls.flatMap(({ id }) => (id.startsWith(`${name}-`) ? [id.split('-')[1]] : []));
    const all = (count: number) => Array.from({ length: count }, (_, index) => String(index));
    expect(of('a')).toStrictEqual(all(CALLS));
    expect(of('b')).toStrictEqual(all(CALLS));
    expect(of('killed').length).toBeGreaterThan(20);
    expect(of('killed')).toStrictEqual(all(of('killed').length));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
