import { defineConfig, mergeConfig } from 'vitest/config';
import shared from './vitest.config.js';

/** Tests against a live service: they need TINKER_API_KEY, take minutes and cost a little. */
export default mergeConfig(
  { ...shared, test: {} },
  defineConfig({
    test: {
      include: ['test/live/**/*.test.ts'],
      // A step waits for the service's next cycle, and there may be a queue.
      testTimeout: 15 * 60_000,
      hookTimeout: 15 * 60_000,
      maxWorkers: 1,
      sequence: { concurrent: false },
      bail: 1,
    },
  }),
);
