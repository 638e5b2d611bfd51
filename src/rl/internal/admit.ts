import { type MonoTypeOperatorFunction, Observable } from 'rxjs';
import { Queue } from '../../client/connection/Queue.js';
import { currentGate, Gate, withGate } from '../../operators/gate.js';
import { Listener } from '../../operators/internal/listener.js';
import type { LivePolicy } from '../LivePolicy.js';
import type { RlListener } from '../rlEvent.js';

/**
 * Lets values through while there is a policy and fewer than the pace's limit are admitted beyond what training is done
 * with. Values that wait are queued, and its gate is closed while one does. Completes when the last value has been let through.
 */
export function admit<T, S>(policy: LivePolicy<S>, report?: RlListener): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable((subscriber) => {
      const { pace } = policy;
      const downstream = currentGate();
      const gate = new Gate(downstream);
      const waiting = new Queue<T>();
      let admitted = 0;
      let told: string | undefined;
      let ended = false;
      let busy = false;
      let stopWaiting: (() => void) | undefined;

      const mayAdmit = () => policy.current !== undefined && admitted - pace.done < pace.limit;

      const tell = () => {
        if (ended && waiting.length === 0) return;
        const reason = policy.current === undefined ? 'policy' : 'training';
        const key = `${reason} ${admitted} ${pace.done}`;
        if (key === told) return;
        told = key;
        report?.({ type: 'rl-waiting', for: reason, admitted, done: pace.done });
      };

      const advance = () => {
        // Training that is done synchronously comes back here from within the loop, which goes on by itself.
        if (busy) return;
        busy = true;
        try {
          while (waiting.length > 0 && mayAdmit() && downstream?.isOpen !== false && !subscriber.closed) {
            admitted++;
            if (ended && waiting.length === 1) pace.total = admitted;
            subscriber.next(waiting.shift());
          }
        } finally {
          busy = false;
        }
        if (subscriber.closed) return;
        if (ended && waiting.length === 0) return subscriber.complete();
        if (!mayAdmit()) tell();
        if (downstream?.isOpen === false && waiting.length > 0 && stopWaiting === undefined) {
          stopWaiting = downstream.onceOpen(() => {
            stopWaiting = undefined;
            withGate(downstream, advance);
          });
        }
        // One is read ahead, so that the end of the tasks is known when the last of them is trained on.
        gate.set(waiting.length === 0);
      };

      subscriber.add(() => {
        stopWaiting?.();
        waiting.clear();
      });
      const changes = new Listener<void>(subscriber, downstream, { next: advance, complete: () => {} }, undefined);
      pace.changes.subscribe(changes);
      advance();
      const outer = new Listener<T>(
        subscriber,
        downstream,
        {
          next: (value) => {
            waiting.push(value);
            advance();
          },
          complete: () => {
            ended = true;
            if (waiting.length === 0) pace.total = admitted;
            advance();
          },
        },
        undefined,
      );
      withGate(gate, () => source.subscribe(outer));
    });
}
