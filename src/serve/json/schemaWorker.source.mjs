/** Starts schemaWorker.ts from TypeScript source, for this repository's own tests. The built package has schemaWorker.js and never comes here. */
import { fileURLToPath } from 'node:url';
import { bundledSource } from '../../../scripts/bundle-source.mjs';

await import(await bundledSource('schemaWorker', fileURLToPath(new URL('./schemaWorker.ts', import.meta.url))));
