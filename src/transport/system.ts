import { randomUUID } from 'node:crypto';
import { type } from 'node:os';
import type * as zlib from 'node:zlib';

/** The longest a timer can wait; a longer one would go off at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Chance, from the machine. Everything above takes it as a parameter. */
export const systemRandom = (): number => Math.random();
export const systemUuid: () => string = randomUUID;

/** Has something done when the process ends, until the returned function is called. */
export type OnExit = (act: () => void) => () => void;

const atExit = new Set<() => void>();
const runAtExit = (): void => {
  for (const act of [...atExit]) act();
};
/** One listener for all: Node warns of more than ten. */
export const systemExit: OnExit = (act) => {
  if (atExit.size === 0) process.on('exit', runAtExit);
  atExit.add(act);
  return () => {
    atExit.delete(act);
    if (atExit.size === 0) process.off('exit', runAtExit);
  };
};

let processId: string | undefined;
/** One for all clients of this process. */
export const processUuid = (): string => (processId ??= randomUUID());

/** What Python calls this machine's system: `Linux`, `Darwin`, `Windows`. */
export const platformName = (): string => type().replace(/^Windows_NT$/, 'Windows');

type Zlib = typeof zlib & {
  zstdCompressSync?: (bytes: Uint8Array) => Buffer;
  zstdDecompressSync?: (bytes: Uint8Array) => Buffer;
};

/** zstd where the running Node has it (22.15 and later); undefined elsewhere, and then bodies go out as they are. */
export const zstdCompress = (): ((bytes: Uint8Array) => Uint8Array) | undefined =>
  // Loaded when it is needed, which the first request seldom does.
  (process.getBuiltinModule('node:zlib') as Zlib).zstdCompressSync;
