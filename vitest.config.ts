import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export const NEEDS_MORE = ['localSdk', 'openaiClient', 'openLogs', 'parityTable', 'tokenizers'].map(
  (name) => `test/parity/${name}.test.ts`,
);

const loopback = (...names: readonly string[]) => names.map((name) => `test/loopback/${name}.test.ts`);

/** Tests that look at a clock: they run after the others, one by one. */
export const TIMED = loopback('deadlines', 'localResponsive');
/** Tests that count cycles of a clock, and mostly wait for it: they run after the others, two at a time. */
export const CYCLES = loopback('lossCycles', 'rlCycles', 'streamsCycles');

export default defineConfig({
  resolve: {
    alias: [
      { find: /^tinker-rx$/, replacement: source('index.ts') },
      { find: /^tinker-rx\/(.+)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    // What needs Python, a browser, a key or other packages' files has a run of its own: test:parity, test:browser, test:live.
    exclude: ['test/browser/**', 'test/live/**', ...NEEDS_MORE, ...TIMED, ...CYCLES, '**/node_modules/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: 'forks',
    maxWorkers: 2,
    // Files of a worker share its modules: loading them anew for each file took more time than the tests. A test therefore puts back
    // what it changes in the process (environment, prototypes, listeners).
    isolate: false,
  },
});
