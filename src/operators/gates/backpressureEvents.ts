import { Subject } from 'rxjs';
import type { BackpressureEvent } from '../backpressure.js';

/** Where operators and sources tell what `backpressure$` shows. */
export const backpressureEvents = new Subject<BackpressureEvent>();
