import { mergeConfig } from 'vitest/config';
import base from './vitest.config.js';

/** The long forms of the suites that the usual run has in short: `npm run test:chaos`, `test:fuzz`, `test:soak`. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [] } },
  {
    test: {
      include: ['test/reliability/**/*.test.ts'],
      env: { TINKER_RX_SUITE: 'long' },
      execArgv: ['--expose-gc'],
      testTimeout: 30 * 60_000,
      hookTimeout: 60_000,
    },
  },
);
