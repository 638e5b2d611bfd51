// The contract of operators that live outside `operators` and `rl`; what is particular to each is in the tests of its room.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { map, NEVER } from 'rxjs';
import { afterAll, beforeAll, describe } from 'vitest';
import { foldDashboard } from '../../src/dashboard/client.js';
import { evaluate, withCost } from '../../src/evals/index.js';
import type { Step } from '../../src/operators/training/step.js';
import { metricsLog, tensorBoardLog, toJsonl, wandbLog } from '../../src/sinks/index.js';
import { keepsContract, throwing } from './contract.js';
import { instantAgent, instantSampler } from './instantLoop.js';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'contract-'))));
afterAll(() => rmSync(folder, { recursive: true }));
const step = (index: number): Step => ({
  ...{ index, loss: 1, lossSum: 1, metrics: {}, datums: 1, tokens: 1, learningRate: 1, batches: 1, durationMs: 1 },
});

describe('toJsonl', () => {
  keepsContract({
    operator: () => toJsonl(join(folder, 'lines.jsonl')),
    readsForThree: 3,
    throwing: () => toJsonl(join(folder, 'none.jsonl'), { encode: throwing }),
  });
});

describe('metricsLog', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, index) => step(index)),
        metricsLog(folder),
      ),
    readsForThree: 3,
  });
});

describe('tensorBoardLog', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, index) => step(index)),
        tensorBoardLog(join(folder, 'tensorBoardLog')),
      ),
    readsForThree: 3,
  });
});

describe('wandbLog', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, index) => step(index)),
        wandbLog(join(folder, 'wandbLog')),
      ),
    readsForThree: 3,
  });
});

describe('foldDashboard', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => ({ id: 1, atMs: 0, changes: [] }) as never),
        foldDashboard(),
        map(({ version }) => version),
      ),
    readsForThree: 3,
  });
});

describe('evaluate', () => {
  keepsContract({
    operator: () => evaluate(instantAgent, { sampler: instantSampler }),
    readsForThree: 3,
    throwing: () => evaluate(instantAgent, { sampler: instantSampler, id: throwing }),
  });
});

describe('withCost', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, index) => step(index)),
        withCost(NEVER),
      ),
    readsForThree: 3,
  });
});
