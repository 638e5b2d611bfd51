import type { Gate } from '../gate.js';

// Subscribing travels upstream synchronously, so one variable is enough to hand a gate to the source.
let current: Gate | undefined;

export function readGate(): Gate | undefined {
  return current;
}

/** Makes `gate` the current one and returns the one before, to be put back in a `finally`. */
export function swapGate(gate: Gate | undefined): Gate | undefined {
  const previous = current;
  current = gate;
  return previous;
}
