import { Readable } from 'node:stream';
import { NEVER, type Observable } from 'rxjs';
import type { Context, Surroundings } from '../../../src/cli/context.js';
import { runCli } from '../../../src/cli/program.js';

export interface FakeTerminal {
  /** What is typed or piped in. */
  readonly input?: string;
  /** Width of a terminal; absent: output goes to a file. */
  readonly columns?: number;
  readonly interrupted$?: Observable<void>;
  readonly nowMs?: number;
  /** Told what is written to standard output, as it is. */
  readonly onWrite?: (text: string) => void;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Surroundings that collect what is written. */
export function surroundings({ input = '', columns, interrupted$ = NEVER, nowMs, onWrite }: FakeTerminal = {}): {
  readonly surroundings: Surroundings;
  readonly written: { stdout: string; stderr: string };
} {
  const written = { stdout: '', stderr: '' };
  const output = (name: 'stdout' | 'stderr') => ({
    isTTY: columns !== undefined,
    columns,
    write: (text: string) => {
      written[name] += text;
      if (name === 'stdout') onWrite?.(text);
    },
  });
  return {
    written,
    surroundings: {
      stdin: Readable.from(input === '' ? [] : [input]),
      stdout: output('stdout'),
      stderr: output('stderr'),
      onInterrupt: (listener) => {
        const listening = interrupted$.subscribe(listener);
        return () => listening.unsubscribe();
      },
      now: () => nowMs ?? Date.now(),
      withNpxPrefix: (text) => text,
    },
  };
}

export function contextOf(terminal: FakeTerminal = {}): {
  context: Context;
  written: { stdout: string; stderr: string };
} {
  const { surroundings: around, written } = surroundings(terminal);
  return { context: { ...around, interrupted$: NEVER, format: 'table', baseUrl: undefined }, written };
}

/** Runs a command line in this process. */
export async function run(args: readonly string[], terminal: FakeTerminal = {}): Promise<Ran> {
  const { surroundings: around, written } = surroundings(terminal);
  const code = await runCli(args, around);
  return { code, ...written };
}
