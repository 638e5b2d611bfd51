import { mergeConfig } from 'vitest/config';
import base, { CYCLES } from './vitest.config.js';

/** Two at a time and nothing beside them: each keeps a core busy for less than half of its clock. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  { test: { include: CYCLES, exclude: ['**/node_modules/**'], maxWorkers: 2 } },
);
