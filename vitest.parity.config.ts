import { mergeConfig } from 'vitest/config';
import base, { NEEDS_MORE } from './vitest.config.js';

/** Held against the real Python SDK and real tokenizer files, which are installed when they are missing. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  { test: { include: NEEDS_MORE, exclude: ['**/node_modules/**'], testTimeout: 600_000, hookTimeout: 600_000 } },
);
