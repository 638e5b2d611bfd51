// 2,000 samples that wait on a server which holds every poll for 5 s: the share of a core that this takes, over a window of 20 s once
// all have been sent, over plain HTTP beside raw undici waiting for as many, and over TLS beside node:http2.
// Run: npm run build && node bench/waiting.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

const SAMPLES = 2000;
const HOLD_MS = 5000;
const WINDOW_SECONDS = 20;
const CASES = [
  { name: 'plain HTTP', tls: false, beside: 'raw undici' },
  { name: 'HTTP/2 over TLS', tls: true, beside: 'node:http2 by hand' },
];

export async function measureWaiting({ repeats = Number(process.env.REPEATS ?? 2) } = {}) {
  const rows = [];
  for (const { name, tls, beside } of CASES) {
    await withServer({ neverReady: HOLD_MS, tls }, async (origin) => {
      const [shares, ratios] = [[], []];
      for (let repeat = 0; repeat < repeats; repeat++) {
        const job = { origin, samples: SAMPLES, windowSeconds: WINDOW_SECONDS };
        const ours = await runApart('./waitRun.mjs', job);
        const raw = await runApart('./rawWaitRun.mjs', job);
        shares.push(100 * ours.share);
        ratios.push(ours.share / raw.share);
      }
      rows.push(row(`2,000 samples waiting, ${name}`, '% of a core', shares, { atMost: 5 }));
      rows.push(row(`2,000 samples waiting, ${name}: CPU`, `× ${beside}`, ratios));
    });
  }
  return rows;
}

await main(import.meta.url, measureWaiting);
