/** Starts encodeWorker.ts from TypeScript source, for this repository's own tests. The built package has encodeWorker.js and never comes here. */
import { fileURLToPath } from 'node:url';
import { bundledSource } from '../../../../scripts/bundle-source.mjs';

await import(await bundledSource('encodeWorker', fileURLToPath(new URL('./encodeWorker.ts', import.meta.url))));
