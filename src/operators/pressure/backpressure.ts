import type { Observable } from 'rxjs';
import { backpressureEvents } from './shared/backpressureEvents.js';

/** What happens to backpressure in this process, told as it happens. */
export type BackpressureEvent =
  | {
      /** A queue of an operator has grown long: what feeds it does not pause. Told at 1000, and whenever it has doubled. */
      readonly type: 'queue-grown';
      /** The operator's name. */
      readonly operator: string;
      /** How many values it holds. */
      readonly queued: number;
      /** Where to read why, and what to do. */
      readonly page: string;
    }
  | {
      /** A source of this library was subscribed to. */
      readonly type: 'source-opened';
      /** The source's name, or that of its file. */
      readonly source: string;
      /** Whether it found the gate of a bounded operator downstream; without one it does not pause. */
      readonly gated: boolean;
    };

/**
 * Every queue that grows long and every source that opens, in this process, from subscribe on. Never fails and never
 * completes. The first long queue of an operator is also a warning of the process.
 *
 * ```ts
 * backpressure$.subscribe((event) => console.log(event))
 * ```
 * @see docs/backpressure.md
 */
export const backpressure$: Observable<BackpressureEvent> = backpressureEvents.asObservable();
