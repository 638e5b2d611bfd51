import { Observable } from 'rxjs';
import { type Gate, withGate } from '../gate.js';

/** The source, subscribed to under `gate`: for operators that subscribe again after a wait. */
export function underGate<T>(gate: Gate | undefined, source: Observable<T>): Observable<T> {
  return new Observable((subscriber) => withGate(gate, () => source.subscribe(subscriber)));
}
