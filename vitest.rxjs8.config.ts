import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vitest/config';
import base from './vitest.config.js';

/** RxJS 8 has no release yet: what the bounded operators take from RxJS, tried with its newest alpha. Tests with `rxjs-marbles` need RxJS 7. */
const RXJS_8 = fileURLToPath(new URL('node_modules/rxjs-8/dist/esm/index.js', import.meta.url));

export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  {
    resolve: { alias: [{ find: /^rxjs$/, replacement: RXJS_8 }] },
    test: {
      include: ['test/marbles/{hangs,sameAsRxjs}.test.ts', 'test/unit/sources.memory.test.ts'],
      exclude: ['**/node_modules/**'],
    },
  },
);
