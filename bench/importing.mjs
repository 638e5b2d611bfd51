// CPU from `import 'tinker-rx'` to the first request, Node's own start not included.
// Run: npm run build && node bench/importing.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

export async function measureImporting({ repeats = Number(process.env.REPEATS ?? 5) } = {}) {
  const [first, imported] = [[], []];
  await withServer({}, async (origin) => {
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { firstRequestMs, importMs } = await runApart('./importRun.mjs', { origin });
      first.push(firstRequestMs);
      imported.push(importMs);
    }
  });
  return [row('import to first request', 'ms CPU', first, { atMost: 150 }), row('import alone', 'ms CPU', imported)];
}

await main(import.meta.url, measureImporting);
