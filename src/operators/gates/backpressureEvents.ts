import { Subject } from 'rxjs';
import type { BackpressureEvent } from '../backpressure.js';
import { currentGate, type Gate } from '../gate.js';

/** Where operators and sources tell what `backpressure$` shows. */
export const backpressureEvents = new Subject<BackpressureEvent>();

/** For a source, on subscribe: the gate it has to look at, if any; `backpressure$` tells whether it found one. */
export function findGate(source: string): Gate | undefined {
  const gate = currentGate();
  backpressureEvents.next({ type: 'source-opened', source, gated: gate !== undefined });
  return gate;
}
