import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const MINUTE = 60_000;

/** A project is a set of folders under `test/`, and what they need. `npm test` runs `node` and `rxjs8`; the others have scripts of their own. */
export default defineConfig(({ mode }) => ({
  resolve: {
    alias: [
      { find: /^tinker-rx$/, replacement: path('src/index.ts') },
      { find: /^tinker-rx\/(.+)$/, replacement: path('src/$1/index.ts') },
    ],
  },
  test: {
    // A busy machine is slow; a test that hangs is found all the same.
    testTimeout: 5 * MINUTE,
    hookTimeout: 5 * MINUTE,
    expect: { poll: { timeout: 4 * MINUTE } },
    pool: 'forks',
    maxWorkers: 2,
    // Files of a worker share its modules: loading them again for each file took longer than the tests. A test therefore restores
    // what it changes in the process (environment, prototypes, listeners).
    isolate: false,
    projects: [
      {
        extends: true,
        test: { name: 'node', include: ['test/{unit,marbles,loopback,parity,built}/**/*.test.ts'] },
      },
      {
        // RxJS 8 has no release yet. What the bounded operators take from RxJS, tried with its newest alpha; `rxjs-marbles` needs RxJS 7.
        extends: true,
        resolve: { alias: [{ find: /^rxjs$/, replacement: path('node_modules/rxjs-8/dist/esm/index.js') }] },
        test: {
          name: 'rxjs8',
          include: ['test/marbles/{hangs,sameAsRxjs}.test.ts', 'test/unit/sources.memory.test.ts'],
        },
      },
      {
        // Chaos, fuzzing and soak. `--mode long` runs their long forms.
        extends: true,
        test: {
          name: 'reliability',
          include: ['test/reliability/**/*.test.ts'],
          env: { TINKER_RX_SUITE: mode },
          execArgv: ['--expose-gc'],
          testTimeout: 30 * MINUTE,
        },
      },
      {
        // Against the real Python SDK and real tokenizer files, which are installed when they are missing.
        extends: true,
        test: {
          name: 'python',
          include: ['test/python/**/*.test.ts'],
          testTimeout: 10 * MINUTE,
          hookTimeout: 10 * MINUTE,
        },
      },
      {
        // A real language model, which is fetched when it is missing. One file at a time: each has the model in memory.
        extends: true,
        test: {
          name: 'model',
          include: ['test/model/**/*.test.ts'],
          testTimeout: 20 * MINUTE,
          hookTimeout: 10 * MINUTE,
          fileParallelism: false,
        },
      },
      {
        // The packed package, installed as users install it. One file at a time: they share the project.
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          testTimeout: 10 * MINUTE,
          hookTimeout: 10 * MINUTE,
          fileParallelism: false,
        },
      },
      {
        // The README's program on other releases of Node, on Bun and on Deno.
        extends: true,
        test: { name: 'runtimes', include: ['test/runtimes/**/*.test.ts'], testTimeout: 10 * MINUTE },
      },
      {
        // The dashboard in Chromium, on the built page.
        extends: true,
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          env: { TINKER_RX_SUITE: mode },
          fileParallelism: false,
        },
      },
      {
        // Against a live service: needs TINKER_API_KEY, takes minutes and costs a little. A step may wait in the service's queue.
        extends: true,
        test: {
          name: 'live',
          include: ['test/live/**/*.test.ts'],
          testTimeout: 15 * MINUTE,
          hookTimeout: 15 * MINUTE,
        },
      },
    ],
  },
}));
