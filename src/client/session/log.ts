import { Subscription, type Observable } from 'rxjs';
import { plainText } from '../../support/plainText.js';
import type { TinkerEvent } from '../events.js';

/** How much the client logs. Each level includes the ones before it; `silent` logs nothing. */
export type LogLevel = 'silent' | 'error' | 'warning' | 'info' | 'debug';
const LEVELS: readonly LogLevel[] = ['silent', 'error', 'warning', 'info', 'debug'];
const SAME_EVERY_MS = 60_000;
const WORTH_A_WARNING = 3;
/** Calls of a few minutes are usual; a program that shows nothing for longer looks as if it hung. */
const QUIET_MS = 5 * 60_000;
/** Lines name requests, so the number of different ones has no limit. */
const MOST_REMEMBERED = 1000;

/** Prints events on stderr, one line each; the same line at most once a minute. */
export function logTo(
  events$: Observable<TinkerEvent>,
  option: LogLevel | undefined,
  print: (line: string) => void = (line) => console.error(line),
): Subscription {
  const level = option ?? environmentLevel(process.env['TINKER_LOG']);
  if (level === 'silent') return Subscription.EMPTY;
  const last = new Map<string, number>();
  return events$.subscribe((event) => {
    const entry = describe(event);
    if (entry === undefined || LEVELS.indexOf(entry.level) > LEVELS.indexOf(level)) return;
    // The machine's clock may be set back: then it is said again.
    if (Math.abs(event.atMs - (last.get(entry.text) ?? -Infinity)) < SAME_EVERY_MS) return;
    if (last.size >= MOST_REMEMBERED) last.clear();
    last.set(entry.text, event.atMs);
    print(plainText(`tinker-rx ${entry.level}: ${entry.text}`));
  });
}

function environmentLevel(text: string | undefined): LogLevel {
  const wanted = text?.toLowerCase() === 'warn' ? 'warning' : text?.toLowerCase();
  return LEVELS.find((level) => level === wanted) ?? 'warning';
}

/** An event as a sentence, and how much it matters; undefined for those that only a machine reads. */
export function describe(
  event: TinkerEvent,
): { readonly level: Exclude<LogLevel, 'silent'>; readonly text: string } | undefined {
  switch (event.type) {
    case 'session-created':
      return { level: 'info', text: `session ${event.sessionId}` };
    case 'session-message':
      return { level: event.level, text: event.message };
    case 'session-finished':
      return event.status === 'ended-by-server'
        ? { level: 'warning', text: `the service has ended session ${event.sessionId}: further calls will fail` }
        : { level: 'info', text: `session ${event.sessionId} finished: ${event.status}` };
    case 'session-unfinished':
      return {
        level: 'warning',
        text: `the service was not told how session ${event.sessionId} ended, and will end it later: ${event.reason}`,
      };
    case 'heartbeat-missed':
      return {
        level: 'warning',
        text: `heartbeats of session ${event.sessionId} are failing (${event.reason}); if this continues, the service will end the session`,
      };
    case 'loop-blocked':
      return {
        level: 'warning',
        text: `nothing ran in this process for ${Math.round(event.blockedMs / 1000)} s: something blocks the event loop, or the machine slept; the service ends sessions that stay silent for long`,
      };
    case 'deprecation-noted':
      return { level: event.level === 'error' ? 'error' : 'warning', text: event.note };
    case 'queue-state':
      // A reason is worth reading whatever the state: work that can never start is told so here.
      return event.reason === undefined && (event.state === 'active' || event.state === 'unknown')
        ? { level: 'debug', text: `${event.requestType} ${event.requestId} waits: ${event.state}` }
        : {
            level: 'warning',
            text:
              event.state === 'active' || event.state === 'unknown'
                ? `${event.requestType} ${event.requestId} waits: ${event.reason}`
                : `${event.target} is paused (${event.state}): ${event.reason ?? QUEUE_REASONS[event.state]}`,
          };
    case 'billing-paused':
      return { level: 'warning', text: `paused for billing: ${event.message}` };
    case 'dispatch-paused':
      return { level: 'info', text: `sampling is paused for ${event.pauseMs} ms: the service asked to slow down` };
    case 'protocol-chosen':
      return { level: 'info', text: `requests are sent as ${event.format}: ${event.reason}` };
    case 'request-retry':
      return {
        // One or two failures are usual; but a server that is down must not look like a slow one.
        level: event.attempt < WORTH_A_WARNING ? 'info' : 'warning',
        text: `attempt ${event.attempt} failed, next attempt in ${event.delayMs / 1000} s: ${event.error.message}`,
      };
    case 'option-ignored':
      return {
        level: 'warning',
        text: `the service ignored ${event.option}: samples of ${event.target} were drawn without it`,
      };
    case 'loss-runs-here':
      return {
        level: 'warning',
        text: `the service does not run the loss ${event.target} (${event.reason}): it is evaluated in this process, between two passes`,
      };
    case 'sample-resubmitted':
      return { level: 'info', text: `a sample of ${event.target} is submitted again: ${event.error.message}` };
    case 'request-failed':
      return { level: 'info', text: `failed: ${event.error.message}` };
    case 'work-progress': {
      const counts = `${event.waiting} waiting, ${event.running} running`;
      const quiet = `nothing has finished for ${Math.floor(event.quietMs / 60_000)} minutes: ${counts}`;
      return event.quietMs < QUIET_MS
        ? { level: 'info', text: `${counts}, ${event.ended} finished in the last minute` }
        : { level: 'warning', text: quiet };
    }
    case 'failure-unread':
      return {
        level: 'warning',
        text: `${event.requestType === undefined ? 'a call' : `${event.requestType} of ${event.target}`} failed, and its result was never read: ${event.error.message}`,
      };
    case 'request-abandoned':
      return {
        level: event.requestType === 'Sample' ? 'debug' : 'warning',
        text: `${event.requestType} ${event.requestId} was abandoned${event.cancelled || event.requestType === 'Sample' ? '' : ': it was already sent, still runs and is billed'}`,
      };
    default:
      return undefined;
  }
}

const QUEUE_REASONS = {
  paused_capacity: 'the service is short of capacity, please wait',
  paused_rate_limit: 'the limit of concurrent work is reached',
};
