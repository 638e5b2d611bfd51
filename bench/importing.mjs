// CPU from `import 'tinker-rx'` to the first request, without Node's own start, and beside it RxJS and undici alone.
// It has no bar. Run: npm run build && node bench/importing.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

export async function measureImporting({ repeats = Number(process.env.REPEATS ?? 9) } = {}) {
  const [first, imported, rxjs, undici] = [[], [], [], []];
  const alone = async (module) => (await runApart('./importRun.mjs', { module })).importMs;
  await withServer({}, async (origin) => {
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { firstRequestMs, importMs } = await runApart('./importRun.mjs', { origin });
      first.push(firstRequestMs);
      imported.push(importMs);
      rxjs.push(await alone('rxjs'));
      undici.push(await alone('undici'));
    }
  });
  return [
    row('import to first request', 'ms CPU', first),
    row('import alone', 'ms CPU', imported),
    row("import 'rxjs' alone", 'ms CPU', rxjs),
    row("import 'undici' alone", 'ms CPU', undici),
  ];
}

await main(import.meta.url, measureImporting);
