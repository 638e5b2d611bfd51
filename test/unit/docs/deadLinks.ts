import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** The Markdown pages below a folder, by their paths in it. */
export function pagesIn(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
    .sort();
}

/** Links and images of the pages below a folder that lead to no file or to no heading; `has` says which files there are. */
export function deadLinks(
  folder: string,
  pages: readonly string[] = pagesIn(folder),
  has = (path: string): boolean => existsSync(join(folder, path)),
): string[] {
  const read = (page: string) => readFileSync(join(folder, page), 'utf8');
  return pages.flatMap((page) =>
    linksIn(read(page)).flatMap((link) => {
      const [target = '', anchor] = link.split('#');
      const path = target === '' ? page : normalize(join(dirname(page), decodeURIComponent(target)));
      if (path.startsWith('..') || !has(path)) return [`${page}: ${path} does not exist`];
      const isDead = anchor !== undefined && path.endsWith('.md') && !anchorsOf(read(path)).has(anchor);
      return isDead ? [`${page}: ${path} has no heading #${anchor}`] : [];
    }),
  );
}

/** What a page links to in the same folder, as Markdown or HTML, without what is code in it. */
function linksIn(page: string): string[] {
  const prose = withoutBlocks(page).replace(/`[^`\n]*`/g, '');
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"\s]+)/g)];
  return links.map(([, inMarkdown, inHtml]) => inMarkdown ?? inHtml!).filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of a page, as GitHub makes them of headings. */
function anchorsOf(page: string): Set<string> {
  return new Set(
    Array.from(withoutBlocks(page).matchAll(/^#+ (.+)$/gm), ([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

const withoutBlocks = (page: string): string => page.replace(/^```[^]*?^```/gm, '');
