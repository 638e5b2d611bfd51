#!/usr/bin/env node
import { INTERRUPTED, type Output } from './context.js';
import { runCli } from './program.js';

/** Whoever presses it a third time wants out, whatever is still being closed. */
const PATIENCE = 3;
const TERMINATED = 143;

const listeners = new Set<() => void>();
const onInterrupt = (listener: () => void): (() => void) => {
  // Wrapped, so that a listener given twice is two.
  const own = () => listener();
  listeners.add(own);
  return () => listeners.delete(own);
};
let interrupts = 0;
let terminated = false;
const interrupt = (signal: NodeJS.Signals): void => {
  interrupts++;
  terminated ||= signal === 'SIGTERM';
  if (listeners.size === 0 || interrupts >= PATIENCE) {
    if (stderr.isTTY === true) process.stderr.write('\r\u001b[K');
    process.exit(terminated ? TERMINATED : INTERRUPTED);
  }
  for (const listener of [...listeners]) listener();
};
process.on('SIGINT', interrupt);
process.on('SIGTERM', interrupt);

let readerIsGone = false;
/** `tinker-rx run list | head` closes the pipe early, which is no failure: what is under way is cancelled, without a word. */
const onBroken = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EPIPE') process.exit(1);
  if (readerIsGone) return;
  readerIsGone = true;
  if (listeners.size === 0) process.exit(0);
  for (const listener of [...listeners]) listener();
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
const code = await runCli(process.argv.slice(2), { stdin, stdout, stderr, onInterrupt, now: () => Date.now() });
// Written out before the process ends, also through a pipe; sockets and timers that are left must not keep it.
await Promise.all([stdout, process.stderr].map((to) => new Promise<void>((resolve) => to.write('', () => resolve()))));
process.exit(readerIsGone ? 0 : code === INTERRUPTED && terminated ? TERMINATED : code);
