import { Observable } from 'rxjs';
import type { Gate } from '../gate.js';

/** Emits once and completes when the gate is open: at once, where there is none. */
export function whenOpen(gate: Gate | undefined): Observable<undefined> {
  return new Observable((subscriber) => {
    const go = () => {
      subscriber.next(undefined);
      subscriber.complete();
    };
    if (gate === undefined) go();
    else return gate.onceOpen(go);
    return undefined;
  });
}
