#!/usr/bin/env node
import { INTERRUPTED } from './context.js';
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
const interrupt = (signal: NodeJS.Signals): void => {
  interrupts++;
  if (listeners.size === 0 || interrupts >= PATIENCE) {
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
    process.exit(signal === 'SIGINT' ? INTERRUPTED : TERMINATED);
  }
  for (const listener of [...listeners]) listener();
};
process.on('SIGINT', interrupt);
process.on('SIGTERM', interrupt);
// `tinker-rx run list | head` closes the pipe early, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const { stdin, stdout, stderr } = process;
const code = await runCli(process.argv.slice(2), { stdin, stdout, stderr, onInterrupt, now: () => Date.now() });
// Written out before the process ends, also through a pipe; sockets and timers that are left must not keep it.
await new Promise<void>((resolve) => stdout.write('', () => resolve()));
await new Promise<void>((resolve) => stderr.write('', () => resolve()));
process.exit(code);
