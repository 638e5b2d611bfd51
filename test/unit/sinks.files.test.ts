import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { concat, firstValueFrom, from, lastValueFrom, NEVER, of, Subject, throwError, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../src/operators/training/step.js';
import { namingFile } from '../../src/support/files/namingFile.js';
import { metricsLog, toFuture, toJsonl } from '../../src/sinks/index.js';
import { resumeFrom } from '../../src/sources/index.js';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'sinks-'))));
afterAll(() => rmSync(folder, { recursive: true }));
let paths = 0;
const fresh = (ending = '') => join(folder, `${paths++}${ending}`);
const read = (path: string) => readFileSync(path, 'utf8');
const lines = (path: string) =>
  read(path)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);

describe('what cannot be written', () => {
  it('says which file, as the system itself does not where a disk is full', () => {
    // As `writeSync` throws it for a file on a full disk.
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const write = () =>
      namingFile('runs/first/metrics.jsonl', () => {
        throw full;
      });
    expect(write).toThrow('runs/first/metrics.jsonl: ENOSPC: no space left on device, write');
    expect(write).toThrow(/^runs\/first\/metrics\.jsonl: ENOSPC/);
    expect(full.code).toBe('ENOSPC');
  });
});

describe('toJsonl', () => {
  it('writes a line a value, passes values on, and makes folders', async () => {
    const path = join(fresh(), 'deep', 'x.jsonl');
    expect(await lastValueFrom(from([{ a: 1 }, [2], 'x']).pipe(toJsonl(path), toArray()))).toStrictEqual([
      { a: 1 },
      [2],
      'x',
    ]);
    expect(read(path)).toBe('{"a":1}\n[2]\n"x"\n');
  });

  it('appends', async () => {
    const path = fresh('.jsonl');
    for (const value of [1, 2]) await lastValueFrom(of(value).pipe(toJsonl(path)));
    expect(read(path)).toBe('1\n2\n');
  });

  it('has written a value before it passes it on', () => {
    const path = fresh('.jsonl');
    const seen: string[] = [];
    concat(of(1, 2), NEVER)
      .pipe(toJsonl(path))
      .subscribe(() => seen.push(read(path)))
      .unsubscribe();
    expect(seen).toStrictEqual(['1\n', '1\n2\n']);
  });

  it('writes typed arrays as arrays, bytes as base64, and large integers', async () => {
    const path = fresh('.jsonl');
    const value = { a: Float32Array.of(0.5, NaN), b: Int32Array.of(1, 2), c: Uint8Array.of(1, 2), d: 5n, e: 2n ** 60n };
    await lastValueFrom(of(value).pipe(toJsonl(path)));
    expect(lines(path)).toStrictEqual([{ a: [0.5, null], b: [1, 2], c: 'AQI=', d: 5, e: '1152921504606846976' }]);
  });

  it('takes off a torn line, whatever its length', async () => {
    const whole = '{"a":1}\n{"b":"字"}\n';
    const row = JSON.stringify({ text: '字'.repeat(50_000) });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: Buffer.byteLength(row) - 1 }), async (kept) => {
        const path = fresh('.jsonl');
        writeFileSync(path, Buffer.concat([Buffer.from(whole), Buffer.from(row).subarray(0, kept)]));
        await lastValueFrom(of({ c: 3 }).pipe(toJsonl(path)));
        expect(read(path)).toBe(`${whole}{"c":3}\n`);
      }),
      { numRuns: 20 },
    );
  });

  it('keeps a last line that only lacks its end, and a file that is one torn line is emptied', async () => {
    const [path, torn, number] = [fresh(), fresh(), fresh()];
    writeFileSync(path, '{"a":1}');
    writeFileSync(torn, '{"a":');
    writeFileSync(number, '1\n12');
    for (const file of [path, torn, number]) await lastValueFrom(of(3).pipe(toJsonl(file)));
    // 12 may have been the beginning of 123.
    expect([read(path), read(torn), read(number)]).toStrictEqual(['{"a":1}\n3\n', '3\n', '1\n3\n']);
  });

  it('passes errors after closing, and fails where it cannot write', async () => {
    const path = fresh('.jsonl');
    const failing = concat(
      of(1),
      throwError(() => new Error('source')),
    ).pipe(toJsonl(path));
    await expect(lastValueFrom(failing)).rejects.toThrow('source');
    expect(read(path)).toBe('1\n');
    await expect(lastValueFrom(of(1).pipe(toJsonl(folder)))).rejects.toThrow('EISDIR');
    await expect(
      lastValueFrom(
        of(1).pipe(
          toJsonl(path, {
            encode: () => {
              throw new Error('encode');
            },
          }),
        ),
      ),
    ).rejects.toThrow('encode');
  });

  it.runIf(existsSync('/dev/full'))('names the file where the disk is full', async () => {
    const path = fresh('.jsonl');
    symlinkSync('/dev/full', path);
    await expect(lastValueFrom(of({ a: 1 }).pipe(toJsonl(path)))).rejects.toMatchObject({
      code: 'ENOSPC',
      path,
      message: expect.stringContaining(path) as string,
    });
  });

  it('leaves no file open, however the stream ends', () => {
    const open = () => readdirSync('/dev/fd').length;
    const path = fresh('.jsonl');
    const before = open();
    of(1).pipe(toJsonl(path)).subscribe();
    throwError(() => 1)
      .pipe(toJsonl(path))
      .subscribe({ error: () => {} });
    const subscription = NEVER.pipe(toJsonl(path)).subscribe();
    expect(open()).toBe(before + 1);
    subscription.unsubscribe();
    expect(open()).toBe(before);
  });

  it('opens nothing before it is subscribed', () => {
    const path = fresh('.jsonl');
    of(1).pipe(toJsonl(path));
    expect(existsSync(path)).toBe(false);
  });
});

describe('toFuture', () => {
  it('gives the last value, to all who read, of one run', async () => {
    let runs = 0;
    const source = new Subject<number>();
    const counted = concat(source);
    const future = toFuture(counted.pipe((stream) => ((runs += 1), stream)));
    source.next(1);
    source.next(2);
    source.complete();
    expect(await Promise.all([future, future, firstValueFrom(future)])).toStrictEqual([2, 2, 2]);
    expect(runs).toBe(1);
  });

  it('rejects with the error, and with an EmptyError where there is no value', async () => {
    await expect(toFuture(throwError(() => new Error('no')))).rejects.toThrow('no');
    await expect(toFuture(from([]))).rejects.toMatchObject({ name: 'EmptyError' });
  });

  it('starts at once, and cancel unsubscribes', async () => {
    const source = new Subject<number>();
    const future = toFuture(source);
    expect(source.observed).toBe(true);
    future.cancel();
    expect(source.observed).toBe(false);
    await expect(future).rejects.toMatchObject({ code: 'cancelled' });
  });
});

describe('metricsLog', () => {
  const step = (index: number, extra: Partial<Step> = {}): Step => ({
    index,
    loss: 1 / (index + 1),
    lossSum: 1,
    metrics: { 'loss:sum': 1 },
    datums: 1,
    tokens: 2,
    learningRate: 0.1,
    batches: index + 1,
    durationMs: 5,
    ...extra,
  });
  const checkpoint = (steps: number) => ({
    name: `s${steps}`,
    steps,
    batches: steps,
    statePath: `tinker://r/weights/s${steps}`,
    kept: true,
  });
  const scheduler = {
    now: () => 77,
    schedule: () => {
      throw new Error('nothing to schedule');
    },
  };
  const run = (dir: string, steps: readonly Step[], options = {}) =>
    lastValueFrom(from(steps).pipe(metricsLog(dir, { scheduler, ...options }), toArray()));
  const indexes = (path: string) => (lines(path) as Step[]).map(({ index }) => index);

  it('writes config, steps and checkpoints, and passes steps on', async () => {
    const dir = fresh();
    const steps = [step(0), step(1, { checkpoint: checkpoint(2), outputs: [] })];
    expect(await run(dir, steps, { config: { model: 'm' } })).toStrictEqual(steps);
    expect(readdirSync(dir).sort()).toStrictEqual(['checkpoints.jsonl', 'config.json', 'metrics.jsonl']);
    expect(JSON.parse(read(join(dir, 'config.json')))).toStrictEqual({ model: 'm' });
    expect(lines(join(dir, 'metrics.jsonl'))).toStrictEqual([
      { ...step(0), atMs: 77 },
      { ...step(1), checkpoint: checkpoint(2), atMs: 77 },
    ]);
    expect(lines(join(dir, 'checkpoints.jsonl'))).toStrictEqual([checkpoint(2)]);
  });

  it('takes off what a resumed run does again, torn lines too', async () => {
    const dir = fresh();
    await run(dir, [step(0), step(1, { checkpoint: checkpoint(2) }), step(2), step(3, { checkpoint: checkpoint(4) })]);
    appendFileSync(join(dir, 'metrics.jsonl'), '{"index":4,"lo');
    appendFileSync(join(dir, 'checkpoints.jsonl'), '{"na');
    await run(dir, [step(2), step(3)]);
    expect(indexes(join(dir, 'metrics.jsonl'))).toStrictEqual([0, 1, 2, 3]);
    expect(lines(join(dir, 'checkpoints.jsonl'))).toStrictEqual([checkpoint(2)]);
  });

  it('puts the log of an earlier run aside when a new one starts in its folder', async () => {
    const dir = fresh();
    for (let times = 0; times < 3; times++) await run(dir, [step(0, { checkpoint: checkpoint(1) })]);
    expect(readdirSync(dir).sort()).toStrictEqual([
      ...['checkpoints.1.jsonl', 'checkpoints.2.jsonl', 'checkpoints.jsonl'],
      ...['metrics.1.jsonl', 'metrics.2.jsonl', 'metrics.jsonl'],
    ]);
  });

  it('touches no log before the first step', async () => {
    const dir = fresh();
    await run(dir, [step(0)]);
    NEVER.pipe(metricsLog(dir)).subscribe().unsubscribe();
    await lastValueFrom(from([]).pipe(metricsLog(dir)), { defaultValue: 0 });
    expect(indexes(join(dir, 'metrics.jsonl'))).toStrictEqual([0]);
  });

  it('has written a step before it passes it on', () => {
    const dir = fresh();
    const seen: number[] = [];
    concat(of(step(0), step(1)), NEVER)
      .pipe(metricsLog(dir))
      .subscribe(() => seen.push(lines(join(dir, 'metrics.jsonl')).length))
      .unsubscribe();
    expect(seen).toStrictEqual([1, 2]);
  });
});

describe('resumeFrom', () => {
  const write = (text: string) => {
    const dir = fresh();
    toJsonl(join(dir, 'x'));
    from([])
      .pipe(toJsonl(join(dir, 'checkpoints.jsonl')))
      .subscribe();
    writeFileSync(join(dir, 'checkpoints.jsonl'), text);
    return dir;
  };
  const line = (steps: number, extra = {}) =>
    `${JSON.stringify({ name: `s${steps}`, steps, batches: steps * 2, statePath: `p${steps}`, kept: true, ...extra })}\n`;
  const point = (dir: string) =>
    firstValueFrom(
      resumeFrom(dir, {
        scheduler: {
          now: () => 1000,
          schedule: () => {
            throw new Error();
          },
        },
      }),
    );

  it('is the start where there is no log, or no checkpoint in it', async () => {
    expect(await point(fresh())).toStrictEqual({ steps: 0, batches: 0 });
    expect(await point(write(''))).toStrictEqual({ steps: 0, batches: 0 });
  });

  it('is the newest checkpoint with its place in the data', async () => {
    expect(await point(write(line(5) + line(10)))).toMatchObject({
      steps: 10,
      batches: 20,
      checkpoint: { statePath: 'p10' },
    });
  });

  it('passes over checkpoints that hold no state or have expired, and a torn line', async () => {
    const log = line(5) + line(10, { statePath: undefined }) + line(15, { expiresAtMs: 1000 });
    expect((await point(write(`${log}{"name":"s20","st`))).steps).toBe(5);
    expect((await point(write(line(5) + line(10, { expiresAtMs: 1001 })))).steps).toBe(10);
  });

  it('says where a line is no checkpoint', async () => {
    await expect(point(write(`${line(5)}{"x":1}\n${line(10)}`))).rejects.toThrow(
      'checkpoints.jsonl:2: not a checkpoint',
    );
    await expect(point(write(`oops\n${line(10)}`))).rejects.toThrow('checkpoints.jsonl:1: not a checkpoint');
  });

  it('reads the file anew for every subscriber', async () => {
    const dir = write(line(5));
    const resume = resumeFrom(dir);
    appendFileSync(join(dir, 'checkpoints.jsonl'), line(10));
    expect((await firstValueFrom(resume)).steps).toBe(10);
  });
});
