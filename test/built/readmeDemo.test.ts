import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { root } from '../unit/docs/snippets.js';
import { patternOf, shapeOf } from './runSnippet.js';

beforeAll(() => {
  if (!existsSync(`${root}dist/cli/main.js`)) throw new Error('the demo runs as it was built: `npm run build` first');
});

it('the demo prints what the README shows', async () => {
  const [, shown] = /```text\n(A Tinker service[^]*?)\n```/.exec(readFileSync(`${root}README.md`, 'utf8'))!;
  // The curve differs from machine to machine.
  const curve = /[▁-█]+/g;
  const log = mkdtempSync(join(tmpdir(), 'demo-'));
  try {
    const demo = [`${root}dist/cli/main.js`, 'demo', '--log', log];
    // As `npx tinker-rx demo` and `npm run demo` start it, however this test was started: it names itself as it was called.
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
    const env = { ...Object.fromEntries(own), npm_command: 'exec' };
    const { stdout } = await promisify(execFile)(process.execPath, demo, { env });
    expect(shapeOf(stdout.replace(curve, '▁'))).toMatch(patternOf(shown!.replace(curve, '▁')));
  } finally {
    rmSync(log, { recursive: true });
  }
});
