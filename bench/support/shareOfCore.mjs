// Prints, as JSON, the share of a core that this process takes while it only waits, and ends it.
import { setTimeout as sleep } from 'node:timers/promises';

export async function printShareOfCore(windowSeconds) {
  const before = process.cpuUsage();
  const start = performance.now();
  await sleep(windowSeconds * 1000);
  const { user, system } = process.cpuUsage(before);
  const share = (user + system) / 1e6 / ((performance.now() - start) / 1000);
  console.log(JSON.stringify({ share }));
  process.exit(0);
}
