import type { TinkerEvent } from '../../client/events.js';

/** What the service keeps us waiting for after this event; `before` if the event says nothing of it. */
export function waitingFor(event: TinkerEvent, before: string | undefined): string | undefined {
  switch (event.type) {
    case 'queue-state':
      if (event.state === 'active' || event.state === 'unknown') return undefined;
      return `waiting: ${event.state.replaceAll('_', ' ')}${event.reason === undefined ? '' : ` (${event.reason})`}`;
    case 'request-retry':
      return `trying again in ${seconds(event.delayMs)}`;
    case 'dispatch-paused':
      return `sampling paused for ${seconds(event.pauseMs)}`;
    case 'billing-paused':
      return `paused for billing: ${event.message}`;
    case 'request-finished':
      return undefined;
    default:
      return before;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
