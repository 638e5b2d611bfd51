// CPU from `import 'tinker-rx'` to the first request, Node's own start not included; and what two of the packages take that it loads
// by then, each imported alone: RxJS, and of undici the client. The rest is left to us.
// Run: npm run build && node bench/importing.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

export async function measureImporting({ repeats = Number(process.env.REPEATS ?? 5) } = {}) {
  const [first, imported, rxjs, client, undici] = [[], [], [], [], []];
  const alone = async (module) => (await runApart('./importRun.mjs', { module })).importMs;
  await withServer({}, async (origin) => {
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { firstRequestMs, importMs } = await runApart('./importRun.mjs', { origin });
      first.push(firstRequestMs);
      imported.push(importMs);
      rxjs.push(await alone('rxjs'));
      client.push(await alone('undici/lib/dispatcher/client.js'));
      undici.push(await alone('undici'));
    }
  });
  return [
    row('import to first request', 'ms CPU', first, { atMost: 150 }),
    row('import alone', 'ms CPU', imported),
    row("import 'rxjs' alone", 'ms CPU', rxjs),
    row("undici's client alone, which the first request loads", 'ms CPU', client),
    row("import 'undici' alone", 'ms CPU', undici),
  ];
}

await main(import.meta.url, measureImporting);
