// The site of `npm run docs`: the guides, in the order of docs/README.md, and the API reference.
import { cpSync, readFileSync } from 'node:fs';

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const rooms = Object.keys(exports)
  .filter((path) => !/\.json$|\*/.test(path))
  .map((path) => path.replace(/^\.\/?/, ''));
const index = readFileSync(new URL('docs/README.md', import.meta.url), 'utf8');
const pages = Array.from(index.matchAll(/\]\(([\w-]+\.md)\)/g), ([, page]) => `docs/${page}`);

/** Pages of the repository have no front matter: their titles in the site, and where they stand. */
const REPOSITORY_PAGES = {
  CHANGELOG: { title: 'Changelog', group: 'Help' },
  SECURITY: { title: 'Security', group: 'Help' },
  CONTRIBUTING: { title: 'Contributing', group: 'Internals' },
  'test/parity/skyrl': { title: 'A real SkyRL server', group: 'Internals' },
};

function nameRepositoryPages(app) {
  app.converter.on('createDocument', (_, document) => {
    const page = REPOSITORY_PAGES[document.name];
    if (page === undefined) return;
    document.name = page.title;
    document.frontmatter.group = page.group;
  });
}

/** The site also has llms.txt, and the pages that it links to as Markdown. */
function copyText(app) {
  app.renderer.on('endRender', ({ outputDirectory }) => {
    for (const path of ['llms.txt', 'README.md', 'examples/README.md', 'docs/README.md', ...pages])
      cpSync(new URL(path, import.meta.url), `${outputDirectory}/${path}`);
  });
}

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'tinker-rx',
  entryPoints: rooms.map((room) => (room === '' ? 'src/index.ts' : `src/${room}/index.ts`)),
  tsconfig: 'tsconfig.build.json',
  // `npm run typecheck` finds them, in a fifth of the time.
  skipErrorChecking: true,
  out: 'docs/api',
  readme: 'README.md',
  customCss: 'docs/site.css',
  plugin: [nameRepositoryPages, copyText],
  projectDocuments: [
    'docs/README.md',
    ...pages,
    'examples/README.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'test/parity/skyrl.md',
  ],
  highlightLanguages: [
    'typescript',
    'javascript',
    'json',
    'http',
    'yaml',
    'shellscript',
    'sh',
    'python',
    'text',
    'bash',
    'html',
    'console',
  ],
  includeVersion: true,
  disableSources: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  searchInDocuments: true,
  navigation: { includeGroups: true, includeCategories: true, includeFolders: false },
  groupOrder: ['Start', 'Guides', 'Concepts', 'Reference', 'Help', 'Internals', 'Modules', '*'],
  sort: ['documents-first', 'kind', 'alphabetical-ignoring-documents'],
  validation: { invalidLink: true, notExported: false, notDocumented: false },
  treatWarningsAsErrors: true,
};
