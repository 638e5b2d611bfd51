import { currentGate, type Gate } from '../gate.js';
import { backpressureEvents } from './backpressureEvents.js';

/** For a source, on subscribe: the gate it has to look at, if any; `backpressure$` tells whether it found one. */
export function findGate(source: string): Gate | undefined {
  const gate = currentGate();
  backpressureEvents.next({ type: 'source-opened', source, gated: gate !== undefined });
  return gate;
}
