import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { map } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rlLog, type RlStep } from '../../src/rl/index.js';
import { scored } from '../../src/rl/learning/scored.js';
import { keepsContract } from './contract.js';
import { groupOf } from './fakeLoop.js';
import { marbles } from './marbles.js';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'rl-log-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const stepAt = (index: number): RlStep<string> => ({
  ...{ index, loss: 1, lossSum: 1, metrics: { 'optim/lr': 1 }, datums: 2, tokens: 4, learningRate: 1 },
  ...{ batches: index + 1, durationMs: 1, reward: 0.5, groups: [scored(groupOf(index, [1, 0]))] },
});
const lines = (file: string) => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n').length;

describe('rlLog', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, index) => stepAt(index)),
        rlLog(folder),
      ),
    readsForThree: 3,
  });

  it(
    'passes each step on as it is, once it is written',
    marbles((m) => {
      const [a, b] = [stepAt(0), stepAt(1)];
      const source = m.cold('  -a-b-|', { a, b });
      const subs = '           ^----!';
      const expected = '       -a-b-|';
      const written: number[] = [];
      const result = source.pipe(
        rlLog(folder),
        map((step) => {
          written.push(lines('rollouts.jsonl'), lines('metrics.jsonl'));
          return step;
        }),
      );
      m.expect(result).toBeObservable(expected, { a, b });
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(written).toStrictEqual([2, 1, 4, 2]);
    }),
  );

  it(
    'ends with an error where it cannot write',
    marbles((m) => {
      const source = m.cold('  -a-b-|', { a: stepAt(0), b: stepAt(1) });
      const subs = '           ^!';
      const decode = () => {
        throw new Error('thrown');
      };
      m.expect(source.pipe(rlLog(folder, { decode }))).toBeObservable('-#', undefined, new Error('thrown'));
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );
});
