import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PAGES, root } from './snippets.js';

/** The anchors a page has, as GitHub makes them of headings. */
function anchorsOf(page: string): Set<string> {
  const headings = withoutCode(page).matchAll(/^#+ (.+)$/gm);
  return new Set(
    Array.from(headings, ([, text]) =>
      text!
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

const withoutCode = (page: string): string =>
  page.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, (code) => code.slice(1, -1).replace(/[[\]]/g, ''));

const read = (page: string): string => readFileSync(join(root, page), 'utf8');

describe('links', () => {
  it.each(PAGES)('of %s lead somewhere', (page) => {
    const broken: string[] = [];
    for (const [, target] of withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [path = '', anchor] = target!.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      if (!existsSync(join(root, file))) broken.push(target!);
      else if (anchor !== undefined && statSync(join(root, file)).isFile() && !anchorsOf(read(file)).has(anchor))
        broken.push(target!);
    }
    expect(broken).toStrictEqual([]);
  });

  it('docs/README.md names every page of the folder', () => {
    const index = read('docs/README.md');
    const missing = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md').filter(
      (page) => !index.includes(`](${page.slice('docs/'.length)})`),
    );
    expect(missing).toStrictEqual([]);
  });
});
