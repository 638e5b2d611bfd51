import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { deadLinks, pagesIn } from '../unit/docs/deadLinks.js';
import { execute, root } from './execute.js';
import { install, pack } from './installed.js';

/** The most that may be packed. About a third of it is the weights of the embedded models. Who needs more says why in CONTRIBUTING.md. */
const BUDGET = { packedKiB: 2600, unpackedKiB: 6500, files: 2100 };

const MUST_HAVE = [
  ...['LICENSE', 'README.md', 'CHANGELOG.md', 'llms.txt', 'dist/index.js', 'dist/index.d.ts', 'dist/cli/main.js'],
  ...['dist/dashboard/page.html', 'assets/questions.jsonl', 'examples/data/questions.jsonl'],
  ...['assets/tinker-rx-tiny.safetensors', 'assets/tinker-rx-small.safetensors'],
];
const MAY_HAVE =
  /^(dist\/|assets\/|examples\/|docs\/([\w-]+\.md|marbles\/\w+\.svg|images\/[\w-]+\.png)$|test\/parity\/skyrl\.md$|package\.json$|llms\.txt$|[A-Z]+(\.md)?$)/;

it('the tarball has what users need, and nothing that an earlier build left behind', async () => {
  const paths = (await pack()).files.map(({ path }) => path);
  expect(MUST_HAVE.filter((path) => !paths.includes(path))).toStrictEqual([]);
  expect(paths.filter((path) => !MAY_HAVE.test(path) || path.includes('node_modules'))).toStrictEqual([]);
  const source = (path: string) => path.replace('dist/', 'src/').replace(/(\.d)?\.[jt]s$/, '.ts');
  const compiled = paths.filter((path) => /^dist\/.*\.(js|d\.ts)$/.test(path));
  expect(compiled.filter((path) => !existsSync(join(root, source(path))))).toStrictEqual([]);
});

it('the tarball stays within its budget', async () => {
  const { size, unpackedSize, entryCount } = await pack();
  expect(Math.ceil(size / 1024), 'KiB packed').toBeLessThanOrEqual(BUDGET.packedKiB);
  expect(Math.ceil(unpackedSize / 1024), 'KiB unpacked').toBeLessThanOrEqual(BUDGET.unpackedKiB);
  expect(entryCount, 'files').toBeLessThanOrEqual(BUDGET.files);
});

it('publint finds nothing', async () => {
  const cli = fileURLToPath(new URL('cli.js', import.meta.resolve('publint')));
  expect(await execute(process.execPath, [cli, 'run', (await pack()).path, '--strict'])).toContain('All good');
});

it('the types are not wrong', async () => {
  const cli = fileURLToPath(new URL('dist/index.js', import.meta.resolve('@arethetypeswrong/cli/package.json')));
  const told = await execute(process.execPath, [cli, (await pack()).path, '--profile', 'esm-only']);
  expect(told).toContain('bundler: 🟢');
});

it('no link of its pages is dead', async () => {
  const { installed } = await install();
  expect(pagesIn(installed).length).toBeGreaterThan(30);
  expect(deadLinks(installed)).toStrictEqual([]);
});
