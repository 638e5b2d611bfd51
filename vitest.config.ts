import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^tinker-rx$/, replacement: source('index.ts') },
      { find: /^tinker-rx\/(.+)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/browser/**', '**/node_modules/**'],
    testTimeout: 30_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
