import type { TinkerEvent } from '../../client/events.js';
import { describe } from '../../client/session/log.js';
import type { DashboardEvent } from '../state/changes.js';

/** The fields that may be shown, by name: what is added to events later stays here until it is added to this list. */
const SHOWN = [
  'requestType',
  'requestId',
  'target',
  'bytes',
  'state',
  'reason',
  'path',
  'attempt',
  'delayMs',
  'pauseMs',
  'pausedMs',
  'waiting',
  'elapsedMs',
] as const;

/** An event as it goes to the page: named fields only, errors as code and message, and the whole as a sentence. */
export function slimEvent(event: TinkerEvent): DashboardEvent {
  const fields = event as unknown as Readonly<Record<string, unknown>>;
  const shown = Object.fromEntries(
    SHOWN.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]),
  );
  const said = describe(event);
  return {
    ...shown,
    type: event.type,
    atMs: event.atMs,
    ...('error' in event
      ? {
          error: {
            code: event.error.code,
            message: event.error.message,
            ...(event.error.requestId === undefined ? {} : { requestId: event.error.requestId }),
          },
        }
      : {}),
    ...(event.type === 'billing-paused' ? { reason: event.message } : {}),
    ...(event.type === 'checkpoint-saved' ? { text: `saved ${event.path}`, level: 'info' } : {}),
    ...(said === undefined ? {} : { text: said.text, level: said.level }),
  };
}
