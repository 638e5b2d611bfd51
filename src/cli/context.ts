import type { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { plainText } from '../support/plainText.js';

/** Where a command writes: standard output, standard error, or a test's collector. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}
export type Input = Readable & { readonly isTTY?: boolean | undefined };

/** What the surroundings give every command. */
export interface Surroundings {
  readonly stdin: Input;
  /** Results, and nothing else. */
  readonly stdout: Output;
  /** Progress, notes and errors. */
  readonly stderr: Output;
  /**
   * Calls the listener for every Ctrl-C, until what it returns is called; without a listener the process ends at once.
   * Not an Observable: RxJS takes longer to load than all that a small command does.
   */
  readonly onInterrupt: (listener: () => void) => () => void;
  readonly now: () => number;
  /** Commands in a text, as the user calls them. */
  readonly withNpxPrefix: (text: string) => string;
}

export type Format = 'table' | 'json';

/** The surroundings and the options that every command has. */
export interface Context extends Surroundings {
  readonly format: Format;
  /** Emits for every Ctrl-C. */
  readonly interrupted$: Observable<void>;
  /** For the clients. Absent if the environment decides. */
  readonly baseUrl: string | undefined;
}

/** What a command's file exports: gives the exit code, or nothing for 0. */
export type Run = (context: Context, options: never, ...args: never[]) => Promise<number | void>;

/** The exit code after Ctrl-C, as shells expect it. */
export const INTERRUPTED = 130;

/** Writes a line for the user, over a progress line if one is there. What a server or a file said in it cannot steer the terminal. */
export function note(
  { stderr, withNpxPrefix }: Pick<Context, 'stderr' | 'withNpxPrefix'>,
  text: string,
  prefix = '',
): void {
  stderr.write(`${stderr.isTTY === true ? '\r\u001b[K' : ''}${prefix}${plainText(withNpxPrefix(text))}\n`);
}
