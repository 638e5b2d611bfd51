/** Starts worker.ts from TypeScript source, for this repository's own tests. The built package has worker.js and never comes here. */
import { fileURLToPath } from 'node:url';
import { bundledSource } from '../../../../scripts/bundle-source.mjs';

await import(await bundledSource('worker', fileURLToPath(new URL('./worker.ts', import.meta.url))));
