import { Subject, type Observable } from 'rxjs';
import type { HubEvent } from './HubEvent.js';

const events = new Subject<HubEvent>();

/**
 * Reports every file that this process downloads from the Hugging Face hub, also for `trainer.getRenderer()` and `sampler.getTokenizer()`. Hot, shared by all; never errors and never completes.
 *
 * ```ts
 * hubEvents$.subscribe((event) => {
 *   if (event.type === 'file-progress') console.log(event.file, event.receivedBytes, event.totalBytes);
 * });
 * ```
 */
export const hubEvents$: Observable<HubEvent> = events.asObservable();

/** Tells {@link hubEvents$}. */
export const announce = (event: HubEvent): void => events.next(event);
