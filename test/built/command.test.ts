import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

it('the built command is a program: npx in a checkout runs it as it is', async () => {
  const { stdout } = await promisify(execFile)(path('dist/cli/main.js'), ['--version']);
  const { version } = JSON.parse(readFileSync(path('package.json'), 'utf8')) as { version: string };
  expect(stdout).toContain(version);
});
