import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What `npm run test:live` runs, with the environment of somebody who has a key, or none. */
function testLive(environment: Record<string, string>): Promise<{ readonly code: number; readonly told: string }> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(VITEST|TINKER_|FORCE_COLOR)/.test(name));
  const env = { ...Object.fromEntries(inherited), NO_COLOR: '1', ...environment };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', 'run', '--project', 'live', '--bail', '1'],
      { cwd: root, env },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, told: stdout + stderr }),
    );
  });
}

it('the live suite passes against the embedded service, taken for a live one', async () => {
  const local = await LocalTinker.start();
  const { code, told } = await testLive({ TINKER_BASE_URL: local.url, TINKER_API_KEY: local.apiKey });
  await local.close();
  expect(told).toMatch(/Tests +9 passed \(9\)/);
  expect(code).toBe(0);
});

it('the live suite is skipped with a word where there is no key', async () => {
  const { code, told } = await testLive({});
  expect(told).toContain('test:live is skipped: TINKER_API_KEY is not set');
  expect(told).toMatch(/Tests +9 skipped \(9\)/);
  expect(code).toBe(0);
});
