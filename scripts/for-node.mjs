/** How code is bundled for Node: what the bundle contains of other packages, and how it loads the rest. */
import { createRequire } from 'node:module';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Nearly every program uses a small part of these. All other packages stay where npm puts them: RxJS, of which a program must
 * have one copy; what is loaded only when it is needed; and what users may install or not.
 */
export const INLINED = ['@bufbuild/protobuf', 'commander', 'fp-ts', 'io-ts'];
const isInlined = (id) => INLINED.some((name) => id === name || id.startsWith(`${name}/`));

/**
 * CommonJS that the first request needs is required. It is the same module that `import` gives, but for `import` Node first reads
 * its names with a parser written in JavaScript, which took 16 to 22 ms of CPU.
 */
const REQUIRED = ['rxjs', 'undici/lib/dispatcher/client.js'];
const require = createRequire(import.meta.url);
const requireCommonJs = {
  name: 'require-common-js',
  resolveId: (id) => (REQUIRED.includes(id) ? { id: `\0${id}`, moduleSideEffects: false } : undefined),
  load(id) {
    if (!id.startsWith('\0') || !REQUIRED.includes(id.slice(1))) return undefined;
    const path = id.slice(1);
    const names = Object.keys(require(path));
    return [
      `import { createRequire } from 'node:module';`,
      `const required = createRequire(import.meta.url)('${path}');`,
      names.length > 0 ? `export const { ${names.join(', ')} } = required;` : 'export default required;',
    ].join('\n');
  },
};

/** Options of rolldown. */
export const forNode = {
  platform: 'node',
  external: (id) => !/^[.\0]/.test(id) && !isAbsolute(id) && !isInlined(id) && !REQUIRED.includes(id),
  // Their ES modules, of which only what is used is taken. Node itself finds the CommonJS ones.
  resolve: {
    alias: {
      'fp-ts/lib': 'fp-ts/es6',
      'io-ts': fileURLToPath(new URL('../node_modules/io-ts/es6/index.js', import.meta.url)),
    },
  },
  plugins: [requireCommonJs],
};
