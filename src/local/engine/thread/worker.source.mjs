/**
 * Starts worker.ts from TypeScript source, for this repository's own tests: Node 20 runs no TypeScript, so the module
 * is bundled in memory with rolldown, which comes with vitest. The built package has worker.js and never comes here.
 */
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const bundle = await rolldown({ input: fileURLToPath(new URL('./worker.ts', import.meta.url)), platform: 'node' });
const { output } = await bundle.generate({ format: 'esm', sourcemap: false });
await bundle.close();
await import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`);
