import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that are in use when what is no longer needed is gone. */
export function heapBytes(): number {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** What keeps a process busy: sockets, servers, timers, threads, files, by kind; and who listens to the process itself. */
export function resources(): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  for (const name of process.eventNames()) {
    const count = process.listenerCount(name);
    if (count > 0) counts[`listener of ${String(name)}`] = count;
  }
  return counts;
}

/** How many there are now that were not there before. */
export function leaked(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): string[] {
  return Object.entries(after)
    .filter(([kind, count]) => count > (before[kind] ?? 0))
    .map(([kind, count]) => `${count - (before[kind] ?? 0)} × ${kind}`);
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Means of the first and the last third, without the very first values, in which caches fill. */
export function thirds(heaps: readonly number[]): { readonly first: number; readonly last: number } {
  const warm = heaps.slice(Math.ceil(heaps.length / 10));
  const third = Math.ceil(warm.length / 3);
  return { first: mean(warm.slice(0, third)), last: mean(warm.slice(-third)) };
}
