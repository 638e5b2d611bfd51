import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as operators from '../../src/operators/index.js';

/** What `tinker-rx/operators` has beside operators. */
const OTHERS = ['backpressure$', 'Gate', 'currentGate', 'withGate', 'constant', 'cosine', 'linear', 'numberBatches'];

describe('the contract of operators', () => {
  it('is kept by every operator, in its own tests', () => {
    const without = Object.keys(operators)
      .filter((name) => !OTHERS.includes(name))
      .filter((name) => {
        const file = new URL(`./${name}.test.ts`, import.meta.url);
        return !existsSync(file) || !readFileSync(file, 'utf8').includes('  keepsContract({');
      });
    expect(without).toStrictEqual([]);
  });
});
