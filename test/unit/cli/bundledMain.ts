import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleForNode } from '../../loopback/support/bundleForNode.js';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The command as a file that Node runs, and how to remove it. Node 20 runs no TypeScript: it is bundled, to a place from where its dependencies are found. */
export async function bundleMain(name: string): Promise<{ readonly main: string; readonly remove: () => void }> {
  const folder = join(here('../../../node_modules/.cache'), `tinker-rx-${name}-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  await bundleForNode(here('../../../src/cli/main.ts'), folder, 'main.mjs');
  return { main: join(folder, 'main.mjs'), remove: () => rmSync(folder, { recursive: true, force: true }) };
}
