import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  statSync,
  existsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { firstValueFrom, map, NEVER, type Observable, takeUntil, timer } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  batch,
  checkpointEvery,
  continueFrom,
  linear,
  type Saves,
  shuffle,
  type Step,
  train,
  type Trainable,
} from '../../src/operators/index.js';
import { metricsLog } from '../../src/sinks/index.js';
import { fromJsonl, resumeFrom } from '../../src/sources/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';

/** A model whose whole state is a number that every batch and every rate leaves its trace in. */
class Model {
  constructor(
    readonly saved: Map<string, number>,
    private state = 1,
  ) {}
  #gradient = 0;

  readonly trainer: Trainable & Saves = {
    forwardBackward: (data) => {
      this.#gradient = data.reduce((sum, datum) => (sum * 31 + datum.modelInput.toInts()[0]!) % 1_000_003, this.state);
      const output = { lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': this.state + this.#gradient } };
      return later(output);
    },
    optimStep: (params) => {
      this.state = (this.#gradient * (1 + Number((params as { learningRate: number }).learningRate))) % 1_000_003;
      return later({});
    },
    saveState: (name) => {
      const path = `tinker://run/weights/${name}-${this.saved.size}`;
      this.saved.set(path, this.state);
      return later({ path });
    },
  };
}
const later = <T>(value: T): Observable<T> => timer(2).pipe(map(() => value));

const ROWS = 120;
let folder: string;
let data: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'resume-'));
  data = join(folder, 'data.jsonl');
  writeFileSync(data, Array.from({ length: ROWS }, (_, row) => `${row}\n`).join(''));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs, or goes on with, the run in `dir`, until it is done or `stop` says; gives whether it was done. */
async function run(dir: string, saved: Map<string, number>, stop: Observable<unknown>): Promise<boolean> {
  const resume = await firstValueFrom(resumeFrom(dir));
  const { checkpoint } = resume;
  const model = new Model(saved, checkpoint === undefined ? 1 : saved.get(checkpoint.statePath)!);
  const adam = { learningRate: linear(1, { steps: 40 }) };
  const steps = fromJsonl<number>(data).pipe(
    map((row): Datum => ({ modelInput: ModelInput.fromInts([row]), lossFnInputs: {} })),
    shuffle({ window: 16, seed: 3 }),
    batch({ size: 4 }),
    continueFrom(resume),
    checkpointEvery({ steps: 5, atEnd: true }),
    train(model.trainer, { loss: 'cross_entropy', adam, ahead: 2 }),
    metricsLog(dir),
  );
  let done = resume.steps === ROWS / 4;
  await new Promise<void>((resolve, reject) => {
    steps
      .pipe(takeUntil(stop))
      .subscribe({ next: ({ index }) => (done = index === ROWS / 4 - 1), error: reject, complete: resolve });
  });
  return done;
}

const curve = (dir: string) =>
  readFileSync(join(dir, 'metrics.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Step)
    .map(({ index, loss, learningRate, batches }) => ({ index, loss, learningRate, batches }));

describe('a run that is killed and resumed', () => {
  it('ends with the steps of one that never was, wherever it was killed and whatever was half written', async () => {
    const whole = join(folder, 'whole');
    expect(await run(whole, new Map(), NEVER)).toBe(true);
    const expected = curve(whole);
    expect(expected.map(({ index }) => index)).toStrictEqual(Array.from({ length: 30 }, (_, index) => index));
    let dirs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ afterMs: fc.integer({ min: 1, max: 40 }), torn: fc.nat(60) }), { maxLength: 5 }),
        async (kills) => {
          const dir = join(folder, `killed-${dirs++}`);
          const saved = new Map<string, number>();
          for (const { afterMs, torn } of kills) {
            if (await run(dir, saved, timer(afterMs))) break;
            // A crash may also cut off what was being written.
            const path = join(dir, 'metrics.jsonl');
            if (existsSync(path)) {
              if (torn % 2 === 0)
                appendFileSync(path, '{"index":999,"loss":0.123456,"metrics":{"a":1}}'.slice(0, torn));
              else if (!checkpointed(dir)) truncateSync(path, Math.max(0, statSync(path).size - torn));
            }
          }
          while (!(await run(dir, saved, timer(10_000)))) {
            /* resumed until it is done */
          }
          expect(curve(dir)).toStrictEqual(expected);
        },
      ),
      { numRuns: 12 },
    );
  });
});

/** Once a checkpoint is in the log, the lines of its steps are on the disk: only later ones can be lost. */
function checkpointed(dir: string): boolean {
  const path = join(dir, 'checkpoints.jsonl');
  return existsSync(path) && statSync(path).size > 0;
}
