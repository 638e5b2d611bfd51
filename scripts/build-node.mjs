/**
 * Makes dist/node: what Node loads when a program imports the package or starts the command. All entries are bundled at once,
 * so that what they share exists once. Run by `npm run build`, on the modules that it has compiled.
 *
 * Bundlers and types want one file a module, and have it in dist. Node finds, reads and links each file, so few files load faster.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { forNode, INLINED } from './for-node.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const target = join(dist, 'node');
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));
const manifest = json(join(root, 'package.json'));

/** Threads start from a file of their own, beside the module that starts them. */
const THREADS = { worker: 'local/engine/thread/worker.js', encodeWorker: 'chat/tokenizer/pool/encodeWorker.js' };
const THREAD_STARTERS = new Set(['local/engine/thread/workerLink.js', 'chat/tokenizer/pool/TokenizerPool.js']);

const nameOf = (path) => path.replace(/^(\.\/)?dist\/node\//, '').replace(/\.js$/, '');
const entries = Object.values(manifest.exports).filter((entry) => typeof entry === 'object');
const input = {
  ...Object.fromEntries(entries.map(({ node, module }) => [nameOf(node), join(root, module)])),
  [nameOf(manifest.bin['tinker-rx'])]: join(dist, 'cli/main.js'),
  ...Object.fromEntries(Object.entries(THREADS).map(([name, path]) => [name, join(dist, path)])),
};

/** Files are found relative to the module that names them, which is not where the bundle is. */
const keepPlaces = {
  name: 'keep-places',
  transform(code, id) {
    const path = relative(dist, id).split(sep).join('/');
    if (path.startsWith('..') || THREAD_STARTERS.has(path) || !code.includes('import.meta.url')) return undefined;
    return code.replaceAll('import.meta.url', `new URL('../${path}', import.meta.url).href`);
  },
};

/**
 * Puts what an entry imports into one file. By default, modules are split by which entries share them, into many small files.
 * What is imported later, by `import()`, stays apart. So does the entry itself: the command's awaits what it imports later, which
 * would wait in turn for the file that they share.
 */
const together = (name, entry) => {
  let closure;
  const collect = (id, graph) => {
    if (closure.has(id) || !isAbsolute(id)) return;
    closure.add(id);
    for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) collect(imported, graph);
  };
  return {
    debugName: name,
    name: (id, graph) => {
      if (closure === undefined) {
        closure = new Set();
        collect(join(dist, entry), graph);
        closure.delete(join(dist, entry));
      }
      return closure.has(id) ? name : null;
    },
  };
};

/** The licenses of what is inlined: the file that a package has, or else the comments at the top of its modules. */
function notices(modules) {
  const comment = (path) => /^(?:\/\/.*\n)+/.exec(readFileSync(path, 'utf8'))?.[0].replaceAll(/^\/\/ ?/gm, '');
  return INLINED.map((name) => {
    const folder = join(root, 'node_modules', name);
    const { version, license } = json(join(folder, 'package.json'));
    const file = join(folder, 'LICENSE');
    const own = modules.filter((path) => path.startsWith(folder + sep));
    const texts = existsSync(file) ? [readFileSync(file, 'utf8')] : [...new Set(own.map(comment))];
    if (own.length === 0 || texts.includes(undefined)) throw new Error(`${name}: not used, or without a license`);
    return `${name} ${version}, ${license}\n\n${texts.map((text) => text.trim()).join('\n\n')}\n`;
  });
}

rmSync(target, { recursive: true, force: true });
const bundle = await rolldown({
  input,
  ...forNode,
  tsconfig: false,
  plugins: [keepPlaces, ...forNode.plugins],
});
// Not minified: a stack trace names lines that can be read without a source map. What minifying saves was within the noise.
const { output } = await bundle.write({
  dir: target,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  comments: { legal: true, annotation: false, jsdoc: false },
  codeSplitting: {
    groups: [
      { name: 'rxjs', test: /^\0rxjs$/ },
      // The thread that encodes, and the command before it loads anything, share these with programs, and nothing else of the core.
      { name: 'error', test: /[\\/]wire[\\/](tinkerError|plainText)\.js$/ },
      together('command', 'cli/main.js'),
      together('core', 'index.js'),
    ],
  },
});
await bundle.close();
// Of two names in a file, one gets a number. A class must keep its own: errors are called after theirs.
const renamed = output.flatMap(({ code = '' }) => code.match(/\bclass \w+\$\d+/g) ?? []);
if (renamed.length > 0) throw new Error(`two classes in one file have the same name: ${renamed.join(', ')}`);
const modules = output.flatMap(({ modules }) => Object.keys(modules ?? {}));
writeFileSync(
  join(target, 'THIRD-PARTY.txt'),
  `The files in this folder contain parts of these packages:\n\n${notices(modules).join(`\n${'-'.repeat(80)}\n\n`)}`,
);
const bytes = output.reduce((sum, { code = '' }) => sum + code.length, 0);
console.log(`dist/node: ${output.length} files, ${Math.round(bytes / 1024)} KiB`);
