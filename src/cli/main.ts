#!/usr/bin/env node
import './checkNode.js';
import { withNpxPrefix } from './withNpxPrefix.js';
import { INTERRUPTED, type Output } from './context.js';
import { runCli } from './program.js';

/** The third Ctrl-C ends the process at once. */
const PATIENCE = 3;
/** What ends the process from outside, and the exit code that shells expect for it. */
const SIGNALS = { SIGINT: INTERRUPTED, SIGTERM: 143, SIGHUP: 129 } as const;

const listeners = new Set<() => void>();
const onInterrupt = (listener: () => void): (() => void) => {
  // Wrapped, so that a listener given twice is two.
  const own = () => listener();
  listeners.add(own);
  return () => listeners.delete(own);
};
const stop = (): void => {
  for (const listener of [...listeners]) listener();
};
let interrupts = 0;
let readerIsGone = false;
let interruptedWith: number = INTERRUPTED;
const interrupt = (signal: keyof typeof SIGNALS): void => {
  interruptedWith = SIGNALS[signal];
  // A terminal that goes away says so twice: by the signal, and by what is written to it.
  if (signal === 'SIGHUP' && readerIsGone) return;
  readerIsGone ||= signal === 'SIGHUP';
  interrupts++;
  if (listeners.size === 0 || interrupts >= PATIENCE) {
    if (stderr.isTTY === true) process.stderr.write('\r\u001b[K');
    process.exit(interruptedWith);
  }
  stop();
};
for (const signal of Object.keys(SIGNALS) as (keyof typeof SIGNALS)[]) process.on(signal, () => interrupt(signal));

/**
 * `tinker-rx run list | head` closes the pipe early, and a closed terminal gives EIO. Neither is a failure: work in flight is cancelled silently.
 */
const onBroken = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EPIPE' && error.code !== 'EIO') process.exit(1);
  if (readerIsGone) return;
  readerIsGone = true;
  if (listeners.size === 0) process.exit(0);
  stop();
};
process.stdout.on('error', onBroken);
process.stderr.on('error', onBroken);

/** Standard error, where progress goes: a terminal that cannot redraw a line counts as none. */
const stderr: Output = {
  write: (text) => readerIsGone || process.stderr.write(text),
  isTTY: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
  get columns() {
    return process.stderr.columns;
  },
};

const { stdin, stdout } = process;
const code = await runCli(process.argv.slice(2), {
  stdin,
  stdout,
  stderr,
  onInterrupt,
  now: () => Date.now(),
  withNpxPrefix: (text) => withNpxPrefix(text, process.env),
});
// Written out before the process ends, also through a pipe; sockets and timers that are left must not keep it.
await Promise.all([stdout, process.stderr].map((to) => new Promise<void>((resolve) => to.write('', () => resolve()))));
process.exit(interrupts > 0 && code === INTERRUPTED ? interruptedWith : readerIsGone ? 0 : code);
