import { mergeConfig } from 'vitest/config';
import base, { TIMED } from './vitest.config.js';

/** One after the other, so that what they measure is the code and not its neighbours. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  { test: { include: TIMED, exclude: ['**/node_modules/**'], maxWorkers: 1, fileParallelism: false } },
);
