import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deadLinks } from './deadLinks.js';
import { PAGES, root } from './snippets.js';

describe('links', () => {
  it.each(PAGES)('of %s lead somewhere', (page) => {
    expect(deadLinks(root, [page])).toStrictEqual([]);
  });

  it('that are dead are found: files, headings, images', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-links-'));
    try {
      writeFileSync(join(folder, 'there.md'), '# One heading\n```\n# not a heading\n```\n');
      const links = [
        'there.md',
        'there.md#one-heading',
        '#here',
        'https://example.com',
        'no.md',
        'there.md#not-a-heading',
      ];
      const page = ['# Here', ...links.map((link) => `[a](${link})`), '`[a](code.md)`', '<img src="no.png">'];
      writeFileSync(join(folder, 'page.md'), page.join('\n'));
      expect(deadLinks(folder)).toStrictEqual([
        'page.md: no.md does not exist',
        'page.md: there.md has no heading #not-a-heading',
        'page.md: no.png does not exist',
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  const pages = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md');

  it('docs/README.md names every page of the folder', () => {
    const index = readFileSync(join(root, 'docs/README.md'), 'utf8');
    expect(pages.filter((page) => !index.includes(`](${page.slice('docs/'.length)})`))).toStrictEqual([]);
  });

  it('README.md names every guide', () => {
    const index = readFileSync(join(root, 'README.md'), 'utf8');
    const guides = pages.filter((page) => /^group: Guides$/m.test(readFileSync(join(root, page), 'utf8')));
    expect(guides.length).toBeGreaterThan(20);
    expect(guides.filter((page) => !index.includes(`](${page})`))).toStrictEqual([]);
  });

  it('no page has a line in capital letters that stands for a text to come', () => {
    const toCome = (text: string) => text.match(/^[A-Z]{3,}$/gm) ?? [];
    expect(toCome('What it takes:\n\nTIMES\n')).toStrictEqual(['TIMES']);
    const read = (page: string) => toCome(readFileSync(join(root, page), 'utf8')).map((line) => `${page}: ${line}`);
    expect(PAGES.flatMap(read)).toStrictEqual([]);
  });

  it('llms.txt names every page of docs/, and its links lead somewhere', () => {
    const index = readFileSync(join(root, 'llms.txt'), 'utf8');
    expect(pages.filter((page) => !index.includes(`](${page})`))).toStrictEqual([]);
    expect(deadLinks(root, ['llms.txt', 'AGENTS.md'])).toStrictEqual([]);
  });
});
