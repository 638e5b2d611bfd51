// A million samples streamed through `sampleFrom`: does the last tenth take longer than the second, and does memory grow? The
// transport answers from memory, so that all of it is this library. Run: npm run build && node bench/growth.mjs      (SAMPLES=<n>)
import { runApart } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

const PARTS = 10;

export async function measureGrowth({ samples = Number(process.env.SAMPLES ?? 1_000_000) } = {}) {
  const parts = await runApart('./growthRun.mjs', { samples, parts: PARTS }, { nodeOptions: ['--expose-gc'] });
  // The first part warms the compiler up.
  const [second, last] = [parts[1], parts.at(-1)];
  const name = `${samples.toLocaleString('en')} samples streamed`;
  const micros = parts.slice(1).map(({ cpuSeconds }) => (cpuSeconds * 1e6 * PARTS) / samples);
  return [
    row(`${name}: CPU of the last tenth`, '× the second tenth', [last.cpuSeconds / second.cpuSeconds], { atMost: 1.2 }),
    row(`${name}: memory after them`, 'MB more than after a tenth', [last.megabytes - parts[0].megabytes], {
      atMost: 5,
    }),
    row(`${name}: each`, 'µs CPU', micros),
  ];
}

await main(import.meta.url, measureGrowth);
