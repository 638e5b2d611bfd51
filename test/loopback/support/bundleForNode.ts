import { rolldown, type InputOptions } from 'rolldown';

/** Packages are bundled as they are in the built command, which starts faster so. */
const { forNode } = (await import(new URL('../../../scripts/for-node.mjs', import.meta.url).href)) as {
  readonly forNode: InputOptions;
};

/** Bundles a program of TypeScript, which Node 20 does not run, into a folder from where its dependencies are found. */
export async function bundleForNode(input: string, folder: string, name: string): Promise<void> {
  const bundle = await rolldown({ input, ...forNode, logLevel: 'silent' });
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: name, chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
}
