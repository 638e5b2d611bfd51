import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** The Markdown pages below a folder, by their paths in it. */
export function pagesIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
    .sort();
}

/** Links and images of the pages below a folder that lead to files that are not there; `has` says which are. */
export function deadLinks(folder, pages = pagesIn(folder), has = (path) => existsSync(join(folder, path))) {
  return pages.flatMap((page) =>
    linksIn(readFileSync(join(folder, page), 'utf8'))
      .map((target) => normalize(join(dirname(page), decodeURIComponent(target))))
      .filter((path) => path.startsWith('..') || !has(path))
      .map((path) => `${page}: ${path} is not there`),
  );
}

/** The files that a page links to, without what is code in it. */
function linksIn(text) {
  const prose = text.replace(/^```[^]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)]
    .map(([, target]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}
