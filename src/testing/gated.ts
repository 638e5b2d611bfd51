import { Observable } from 'rxjs';
import { currentGate, withGate } from '../operators/pressure/gate.js';

/**
 * A source that knows of gates, as the file sources do: 0, 1, 2, … as fast as demand allows, up to `count` (at most and by
 * default 10 000). `sent` says how far it came: whether a pipeline keeps backpressure.
 */
export function gated(count = Infinity): { readonly source: Observable<number>; readonly sent: () => number } {
  let sent = 0;
  const source = new Observable<number>((subscriber) => {
    const gate = currentGate();
    let next = 0;
    let stopWaiting: (() => void) | undefined;
    const send = () =>
      withGate(gate, () => {
        // Far beyond what any test wants: a gate that is not found fails the test instead of hanging it.
        while (!subscriber.closed && next < Math.min(count, 10_000)) {
          if (gate?.isOpen === false) {
            stopWaiting = gate.onceOpen(send);
            return;
          }
          sent++;
          subscriber.next(next++);
        }
        subscriber.complete();
      });
    send();
    return () => stopWaiting?.();
  });
  return { source, sent: () => sent };
}
