import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom, map, tap } from 'rxjs';
import { expect, it } from 'vitest';
import { batch, broadcast, train, type Trainable } from '../../src/operators/index.js';
import { fromJsonl } from '../../src/sources/index.js';
import { datum } from '../marbles/fakeTrainer.js';

it('a file of 200,000 rows is read once for two pipelines, and never further than the slower one has room for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rows-'));
  const file = join(folder, 'rows.jsonl');
  writeFileSync(file, '{"a":1}\n'.repeat(200_000));
  const output = { lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': 1 } };
  // Slower than the file: every step waits for the event loop, which the file would use to read on.
  const soon = <T>(value: T) => from(new Promise<T>((done) => setImmediate(() => setImmediate(done, value))));
  const trainer: Trainable = { forwardBackward: () => soon(output), optimStep: () => soon({}) };
  let [read, logged, furthest] = [0, 0, 0];
  const row = datum(2, 1);
  const both = fromJsonl(file).pipe(
    tap(() => read++),
    broadcast({
      steps: (rows) =>
        rows.pipe(
          map(() => row),
          batch({ size: 100 }),
          train(trainer, { loss: 'cross_entropy', ahead: 1 }),
          tap(({ index }) => (furthest = Math.max(furthest, read - 100 * (index + 1)))),
        ),
      log: tap(() => logged++),
    }),
  );
  await lastValueFrom(both);
  rmSync(folder, { recursive: true });
  expect([read, logged]).toStrictEqual([200_000, 200_000]);
  // One batch is submitted ahead, one is being filled, and sixteen rows may wait.
  expect(furthest).toBeLessThanOrEqual(2 * 100 + 16);
});
