import { rolldown } from 'rolldown';

/** Bundles a program of TypeScript, which Node 20 does not run, into a folder from where its dependencies are found. */
export async function bundleForNode(input: string, folder: string, name: string): Promise<void> {
  const bundle = await rolldown({ input, platform: 'node', external: /^[@a-z]/, logLevel: 'silent' });
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: name, chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
}
