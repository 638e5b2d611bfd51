import { APIStatusError, isUserError, type TinkerError } from '../errors.js';
import type { TinkerEvent } from '../events.js';

type Severity = 'INFO' | 'WARNING' | 'ERROR';
/** What a report says; the sender adds id, number and time. */
export interface Report {
  readonly event: 'SESSION_START' | 'SESSION_END' | 'UNHANDLED_EXCEPTION' | 'GENERIC_EVENT';
  readonly severity: Severity;
  readonly [field: string]: unknown;
}

/** Waits that are reported under names of this library, with what their event says. */
const WAITS: ReadonlySet<TinkerEvent['type']> = new Set([
  'request-retry',
  'sample-resubmitted',
  'queue-state',
  'dispatch-paused',
  'billing-paused',
  'heartbeat-missed',
]);
/** These end by the caller's own will. */
const WANTED = new Set(['cancelled', 'closed']);

/** The report of an event; undefined for those that the service is not told. */
export function reportOf(event: TinkerEvent): Report | undefined {
  if (event.type === 'request-failed') return WANTED.has(event.error.code) ? undefined : failure(event.error);
  if (!WAITS.has(event.type) || (event.type === 'queue-state' && event.state === 'active')) return undefined;
  const { type, atMs: _, ...rest } = event;
  const data = Object.entries(rest).map(([key, value]): [string, unknown] =>
    key === 'error' ? [key, summary(value as TinkerError)] : [key, value],
  );
  return generic(`tinker-rx.${type}`, Object.fromEntries(data));
}

/** A call that failed, as the Python SDK reports one: by whose fault. */
function failure(error: TinkerError): Report {
  const { name, message } = error;
  if (!isUserError(error)) {
    const { stack } = error;
    return {
      event: 'UNHANDLED_EXCEPTION',
      severity: 'ERROR',
      error_type: name,
      error_message: message,
      ...(stack === undefined ? {} : { traceback: stack }),
    };
  }
  const refused = error instanceof APIStatusError ? { status_code: error.status, body: error.body } : {};
  return generic('user_error', { error_type: name, message, ...refused });
}

const generic = (name: string, data: object): Report => ({
  event: 'GENERIC_EVENT',
  severity: 'WARNING',
  event_name: name,
  event_data: data,
});

const summary = ({ name, code, message, retryable }: TinkerError): object => ({ name, code, message, retryable });

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const twoDigits = (value: number): string => String(Math.floor(value)).padStart(2, '0');

/** A duration as Python writes a timedelta: `0:00:10.500000`, `2 days, 3:04:05`. */
export function timedeltaText(durationMs: number): string {
  const ms = Math.max(0, Math.round(durationMs));
  const days = Math.floor(ms / DAY_MS);
  const rest = ms % DAY_MS;
  const clock = `${Math.floor(rest / HOUR_MS)}:${twoDigits((rest % HOUR_MS) / MINUTE_MS)}:${twoDigits((rest % MINUTE_MS) / SECOND_MS)}`;
  const fraction = ms % SECOND_MS === 0 ? '' : `.${String(ms % SECOND_MS).padStart(3, '0')}000`;
  return `${days === 0 ? '' : `${days} day${days === 1 ? '' : 's'}, `}${clock}${fraction}`;
}
