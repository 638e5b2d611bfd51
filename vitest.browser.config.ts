import { defineConfig, mergeConfig } from 'vitest/config';
import shared from './vitest.config.js';

/** Tests that drive Debian's chromium; they need `npm run build`, which makes the page. */
export default mergeConfig(
  { ...shared, test: {} },
  defineConfig({
    test: {
      include: ['test/browser/**/*.test.ts'],
      testTimeout: 60_000,
      hookTimeout: 60_000,
      pool: 'forks',
      // Files share the modules of their process, as elsewhere.
      isolate: false,
      // One browser at a time: frames a second are measured.
      maxWorkers: 1,
      fileParallelism: false,
    },
  }),
);
