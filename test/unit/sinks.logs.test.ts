/** What TensorBoard and wandb themselves make of these files is in test/python/openLogs.test.ts. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concat, from, lastValueFrom, of, Subject, throwError } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Step } from '../../src/operators/index.js';
import { crc32c } from '../../src/sinks/internal/crc32c.js';
import { tensorBoardLog, wandbLog } from '../../src/sinks/index.js';
import { VirtualClock } from '../../src/testing/index.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'logs-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const step = (index: number): Step => ({
  ...{ index, loss: 0.5, lossSum: 5, datums: 3, tokens: 100, learningRate: 0.5, batches: index + 1, durationMs: 12 },
  metrics: { loss: 9, odd: NaN },
});

/** Bodies of the records of a TFRecord file, with their checksums looked at. */
function records(path: string): Buffer[] {
  const file = readFileSync(path);
  const mask = (crc: number) => (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
  const found: Buffer[] = [];
  for (let at = 0; at < file.length;) {
    const length = Number(file.readBigUInt64LE(at));
    expect(file.readUInt32LE(at + 8)).toBe(mask(crc32c(file.subarray(at, at + 8))));
    const body = file.subarray(at + 12, at + 12 + length);
    expect(file.readUInt32LE(at + 12 + length)).toBe(mask(crc32c(body)));
    found.push(body);
    at += 16 + length;
  }
  return found;
}

it('knows the checksum of the format', () => expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283));

describe('tensorBoardLog', () => {
  it('writes a record for each step, once, and passes the step on', async () => {
    const steps = [step(0), step(1)];
    const seen: Step[] = [];
    await from([...steps, steps[1]!])
      .pipe(tensorBoardLog(folder))
      .forEach((one) => seen.push(one));
    expect(seen).toHaveLength(3);
    const [file] = readdirSync(folder);
    expect(file).toMatch(/^events\.out\.tfevents\.\d{10}\./);
    const bodies = records(join(folder, file!));
    expect(bodies).toHaveLength(3);
    expect(bodies[0]!.toString('latin1')).toContain('brain.Event:2');
    // The metric of the same name does not replace the step's own.
    expect(bodies[1]!.toString('latin1').split('loss').length - 1).toBe(2);
  });

  it('makes no file for no step', async () => {
    await lastValueFrom(from<Step[]>([]).pipe(tensorBoardLog(join(folder, 'x'))), { defaultValue: undefined });
    expect(readdirSync(folder)).toStrictEqual([]);
  });

  it('ends the stream where it cannot write', async () => {
    const { writeFileSync } = await import('node:fs');
    writeFileSync(join(folder, 'file'), '');
    await expect(lastValueFrom(of(step(0)).pipe(tensorBoardLog(join(folder, 'file', 'x'))))).rejects.toThrow(
      /EEXIST|ENOTDIR/,
    );
  });
});

describe('wandbLog', () => {
  const runFile = () => {
    const [run] = readdirSync(folder);
    return { run: run!, bytes: readFileSync(join(folder, run!, 'run-abc.wandb')) };
  };

  it('names the run by its time and id, and leaves out what JSON cannot say', async () => {
    const scheduler = new VirtualClock();
    await lastValueFrom(of(step(0)).pipe(wandbLog(folder, { id: 'abc', scheduler })));
    const { run, bytes } = runFile();
    expect(run).toBe('offline-run-19700101_000000-abc');
    expect(bytes.subarray(0, 4).toString()).toBe(':W&B');
    expect(bytes.toString('latin1')).not.toContain('NaN');
    expect(bytes.toString('latin1')).toContain('learningRate');
  });

  it('ends the run as failed on an error, and well when it is left', async () => {
    const failing = concat(
      of(step(0)),
      throwError(() => new Error('no')),
    );
    await expect(lastValueFrom(failing.pipe(wandbLog(folder, { id: 'abc' })))).rejects.toThrow('no');
    // The last record is exit { exit_code: 1, runtime: 0 }.
    expect(runFile().bytes.toString('hex')).toMatch(/920104080110(00|01)$/);
    rmSync(join(folder, runFile().run), { recursive: true });
    const source = new Subject<Step>();
    const reading = source.pipe(wandbLog(folder, { id: 'abc' })).subscribe();
    source.next(step(0));
    reading.unsubscribe();
    expect(runFile().bytes.toString('hex')).toMatch(/920104080010(00|01)$/);
  });

  it('refuses an id that is a path', () => expect(() => wandbLog(folder, { id: '../x' })).toThrow(RangeError));
});
