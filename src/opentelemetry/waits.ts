import type { Attributes } from '@opentelemetry/api';
import type { TinkerEvent } from '../client/events.js';
import type { RlEvent } from '../rl/pacing/rlEvent.js';
import { ATTRIBUTE, SPAN_EVENT } from './names.js';

/** What happens within a span: mostly something that was waited for. */
export interface Wait {
  readonly name: string;
  readonly attributes: Attributes;
}

/** The wait that an event reports, if any. It contains no prompts or answers. */
export function waitOf(event: TinkerEvent | RlEvent): Wait | undefined {
  switch (event.type) {
    case 'queue-state':
      return wait(SPAN_EVENT.queueState, {
        [ATTRIBUTE.state]: event.state,
        [ATTRIBUTE.reason]: event.reason,
        [ATTRIBUTE.waitedMs]: event.waitedMs,
      });
    case 'request-retry':
      return wait(SPAN_EVENT.retry, {
        [ATTRIBUTE.attempt]: event.attempt,
        [ATTRIBUTE.waitedMs]: event.delayMs,
        [ATTRIBUTE.errorType]: event.error.code,
      });
    case 'sample-resubmitted':
      return wait(SPAN_EVENT.resubmitted, {
        [ATTRIBUTE.attempt]: event.attempt,
        [ATTRIBUTE.waitedMs]: event.delayMs,
        [ATTRIBUTE.errorType]: event.error.code,
      });
    case 'dispatch-paused':
      return wait(SPAN_EVENT.dispatchPaused, { [ATTRIBUTE.waitedMs]: event.pauseMs });
    case 'billing-paused':
      return wait(SPAN_EVENT.billingPaused, { [ATTRIBUTE.waitedMs]: event.pausedMs });
    case 'heartbeat-missed':
      return wait(SPAN_EVENT.heartbeatMissed, { [ATTRIBUTE.waitedMs]: event.silentMs });
    case 'checkpoint-saved':
      return wait(SPAN_EVENT.checkpoint, { [ATTRIBUTE.path]: event.path });
    case 'rl-waiting':
      return wait(SPAN_EVENT.rlWaiting, { [ATTRIBUTE.waitsFor]: event.for });
    case 'policy-published':
      return wait(SPAN_EVENT.policy, { [ATTRIBUTE.policyStep]: event.step });
    default:
      return undefined;
  }
}

const wait = (name: string, attributes: Attributes): Wait => ({ name, attributes });
