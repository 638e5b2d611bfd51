import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as operators from '../../src/operators/index.js';
import * as rl from '../../src/rl/index.js';

/** What `tinker-rx/operators` has beside operators. */
const OTHERS = ['backpressure$', 'Gate', 'currentGate', 'withGate', 'constant', 'cosine', 'linear', 'numberBatches'];

/** What `tinker-rx/rl` has beside operators: agents, rewards for groups, the policy, and where to continue. */
const RL_OTHERS = [
  ...['LivePolicy', 'comparison', 'conversation', 'judge', 'pairwise', 'resumeRl', 'rlTool', 'singleTurn', 'taught'],
  ...['toolUse', 'weightedRewards'],
];

describe('the contract of operators', () => {
  it('is kept by every operator, in its own tests', () => {
    const without = [...Object.keys(operators), ...Object.keys(rl)]
      .filter((name) => ![...OTHERS, ...RL_OTHERS].includes(name))
      .filter((name) => {
        const file = new URL(`./${name}.test.ts`, import.meta.url);
        return !existsSync(file) || !readFileSync(file, 'utf8').includes('  keepsContract({');
      });
    expect(without).toStrictEqual([]);
  });
});
