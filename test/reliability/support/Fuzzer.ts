import { expect } from 'vitest';
import type { Report } from './Report.js';

/** Something that reads foreign bytes or values. */
export interface Target<I> {
  readonly name: string;
  /** Gives the input of a number. */
  readonly input: (index: number) => I;
  /** Reads it: gives something, or fails with an error that says what is wrong. */
  readonly read: (input: I) => unknown;
  /** Whether an error is a clear refusal. */
  readonly refuses: (error: unknown) => boolean;
}

/** CPU of this process, which a busy machine does not change. */
const LONGEST_CPU_MS = 2000;
const MOST_BYTES = 256 * 2 ** 20;

/** Reads so many inputs. Fails with the first that crashes, takes more than two seconds of CPU or holds 256 MiB more than before. */
export async function fuzz<I>(target: Target<I>, count: number, report: Report): Promise<void> {
  let read = 0;
  const crashes: unknown[] = [];
  for (let index = 0; index < count && crashes.length < 3; index++) {
    const input = target.input(index);
    const started = process.cpuUsage();
    const before = process.memoryUsage();
    try {
      await target.read(input);
      read++;
    } catch (error) {
      if (!target.refuses(error)) crashes.push({ index, input: shown(input), error: stackOf(error) });
    }
    const { user, system } = process.cpuUsage(started);
    const after = process.memoryUsage();
    const grew = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    const cpuMs = (user + system) / 1000;
    if (cpuMs > LONGEST_CPU_MS) crashes.push({ index, input: shown(input), cpuMs });
    if (grew > MOST_BYTES) crashes.push({ index, input: shown(input), grew });
  }
  report.add('inputs fuzzed', count);
  report.add('crashes', crashes.length);
  report.add(`read or refused: ${target.name}`, count);
  expect(crashes).toStrictEqual([]);
  // Otherwise every input was refused at its first byte, and nothing behind that was tried.
  expect(read, `${target.name} read none of ${count} inputs`).toBeGreaterThan(0);
}

const stackOf = (error: unknown): unknown => (error instanceof Error ? error.stack : error);

function shown(input: unknown): string {
  if (input instanceof Uint8Array) return Buffer.from(input).toString('base64').slice(0, 4000);
  if (typeof input === 'string') return input.slice(0, 2000);
  try {
    return JSON.stringify(input).slice(0, 2000);
  } catch {
    return String(input);
  }
}
