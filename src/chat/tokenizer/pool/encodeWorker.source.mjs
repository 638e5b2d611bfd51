/**
 * Starts encodeWorker.ts from TypeScript source, for this repository's own tests: Node 20 runs no TypeScript, so the module is bundled with
 * rolldown, which comes with vitest. Packages stay outside of the bundle, which therefore lies where they can be found. The built package has
 * encodeWorker.js and never comes here.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const input = fileURLToPath(new URL('./encodeWorker.ts', import.meta.url));
const bundle = await rolldown({ input, platform: 'node', external: /^[@a-z]/ });
const { output } = await bundle.generate({ format: 'esm', sourcemap: false });
await bundle.close();
const { code } = output[0];
const folder = new URL('../../../../node_modules/.cache/tinker-rx/', import.meta.url);
const file = new URL(`encodeWorker-${createHash('sha256').update(code).digest('hex').slice(0, 16)}.mjs`, folder);
const temporary = new URL(`${randomUUID()}.mjs`, folder);
await mkdir(folder, { recursive: true });
await writeFile(temporary, code);
await rename(temporary, file);
await import(file.href);
