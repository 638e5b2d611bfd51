/** Run by soak.test.ts in a process of its own: the embedded service, until its standard input ends. Prints where it listens. */
import { LocalTinker } from '../../../src/local/index.js';

const local = await LocalTinker.start({ apiKey: 'tml-soak', maxUnnamedSamplers: 4, futureTtlMs: 5000 });
process.stdout.write(`${local.url}\n`);
process.stdin.resume().on('end', () => void local.close().then(() => process.exit(0)));
