/** The pages that are packed link to nothing that is not. The tarball itself is looked at by `npm run check:package`. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

interface Script {
  readonly deadLinks: (folder: string, pages: readonly string[], has: (path: string) => boolean) => string[];
}
const { deadLinks } = (await import(new URL('../../../scripts/dead-links.mjs', import.meta.url).href)) as Script;
const root = fileURLToPath(new URL('../../../', import.meta.url));

it('no link of a packed page is dead', { timeout: 60_000 }, () => {
  const told = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  });
  const [{ files }] = JSON.parse(told) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  const pages = paths.filter((path) => path.endsWith('.md'));
  expect(pages.length).toBeGreaterThan(15);
  // A link may lead to a folder.
  const has = (path: string) =>
    paths.some((packed) => packed === path || packed.startsWith(`${path.replace(/\/$/, '')}/`));
  expect(deadLinks(root, pages, has)).toStrictEqual([]);
  expect(paths).toContain('examples/data/questions.jsonl');
  expect(paths.filter((path) => path.includes('node_modules'))).toStrictEqual([]);
});
