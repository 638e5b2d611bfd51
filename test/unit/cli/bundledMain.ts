import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown, type InputOptions } from 'rolldown';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The packages are bundled as they are in the built command, which starts faster so. */
const { forNode } = (await import(new URL('../../../scripts/for-node.mjs', import.meta.url).href)) as {
  readonly forNode: InputOptions;
};

/** The command as a file that Node runs, and how to remove it. Node 20 runs no TypeScript: it is bundled, to a place from where its dependencies are found. */
export async function bundleMain(name: string): Promise<{ readonly main: string; readonly remove: () => void }> {
  const folder = join(here('../../../node_modules/.cache'), `tinker-rx-${name}-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  const bundle = await rolldown({
    input: here('../../../src/cli/main.ts'),
    ...forNode,
    logLevel: 'silent',
  });
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: 'main.mjs', chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
  return { main: join(folder, 'main.mjs'), remove: () => rmSync(folder, { recursive: true, force: true }) };
}
