import { type MonoTypeOperatorFunction, Observable } from 'rxjs';
import { Queue } from '../../support/Queue.js';
import { currentGate, Gate, withGate } from '../../operators/pressure/gate.js';
import { Downstream, type Heard, listen } from '../../operators/pressure/shared/listen.js';
import type { LivePolicy } from './LivePolicy.js';
import type { RlListener } from './rlEvent.js';

/** What a wait for room downstream is a wait for. */
type FullReason = 'concurrency' | 'training';

/**
 * Lets values through while there is a policy and fewer than the pace's limit are admitted beyond what training is done
 * with. Values that wait are queued, and its gate is closed while one does. Completes when the last value has been let through.
 */
export function admit<T, S>(
  policy: LivePolicy<S>,
  report?: RlListener,
  whenFull: FullReason = 'concurrency',
): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable((subscriber) => {
      const { pace } = policy;
      const gate = new Gate(currentGate());
      const waiting = new Queue<T>();
      let admitted = 0;
      let told: string | undefined;
      let ended = false;
      let busy = false;

      const mayAdmit = () => policy.current !== undefined && admitted - pace.done < pace.limit;

      const reasonToWait = () => {
        if (policy.current === undefined) return 'policy';
        return mayAdmit() ? whenFull : 'training';
      };
      const tell = () => {
        if (ended && waiting.length === 0) return;
        const reason = reasonToWait();
        const key = `${reason} ${admitted} ${pace.done}`;
        if (key === told) return;
        told = key;
        report?.({ type: 'rl-waiting', for: reason, admitted, done: pace.done });
      };

      const advance = () => {
        // Re-entrant call from synchronous training: the running loop handles it.
        if (busy) return;
        busy = true;
        try {
          while (waiting.length > 0 && mayAdmit() && downstream.isOpen && !subscriber.closed) {
            admitted++;
            pace.admitted = Math.max(pace.admitted, admitted);
            if (ended && waiting.length === 1) pace.total ??= admitted;
            subscriber.next(waiting.shift());
          }
        } finally {
          busy = false;
        }
        if (subscriber.closed) return;
        if (ended && waiting.length === 0) return subscriber.complete();
        if (!mayAdmit() || waiting.length > 0) tell();
        if (waiting.length > 0) downstream.waitIfClosed();
        // One is read ahead, so that the end of the tasks is known when the last of them is trained on.
        gate.set(waiting.length === 0);
      };

      const downstream = new Downstream(subscriber, advance);
      listen(pace.changes, downstream, { next: advance, complete: () => {} }, undefined);
      advance();
      const outer: Heard<T, undefined> = {
        next: (value) => {
          waiting.push(value);
          advance();
        },
        complete: () => {
          ended = true;
          if (waiting.length === 0) pace.total ??= admitted;
          advance();
        },
      };
      withGate(gate, () => listen(source, downstream, outer, undefined));
      // Unsubscribe from the source first, then open the gate for its other subscribers.
      subscriber.add(() => {
        waiting.clear();
        gate.set(true);
      });
    });
}
