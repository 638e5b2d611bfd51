// CPU from `import 'tinker-rx'` to the first request over plain HTTP, Node's own start not included. Beside it, each alone: RxJS as
// this package loads it (by `require`) and as a program does (by `import`), and the part of undici that HTTP/1.1 over TLS needs.
// Run: npm run build && node bench/importing.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

export async function measureImporting({ repeats = Number(process.env.REPEATS ?? 9) } = {}) {
  const [first, imported, required, rxjs, client, undici] = [[], [], [], [], [], []];
  const alone = async (module, how = 'import') => (await runApart('./importRun.mjs', { module, how })).importMs;
  await withServer({}, async (origin) => {
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { firstRequestMs, importMs } = await runApart('./importRun.mjs', { origin });
      first.push(firstRequestMs);
      imported.push(importMs);
      required.push(await alone('rxjs', 'require'));
      rxjs.push(await alone('rxjs'));
      client.push(await alone('undici/lib/dispatcher/client.js'));
      undici.push(await alone('undici'));
    }
  });
  return [
    row('import to first request', 'ms CPU', first, { atMost: 150 }),
    row('import alone', 'ms CPU', imported),
    row("require('rxjs') alone", 'ms CPU', required),
    row("import 'rxjs' alone", 'ms CPU', rxjs),
    row("undici's client alone, which HTTP/1.1 over TLS loads", 'ms CPU', client),
    row("import 'undici' alone", 'ms CPU', undici),
  ];
}

await main(import.meta.url, measureImporting);
