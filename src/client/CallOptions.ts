import { Subscription, type SchedulerLike } from 'rxjs';
import { LONGEST_TIMER_MS } from '../transport/system.js';
import { ValidationError } from '../wire/tinkerError.js';
import { APITimeoutError, CancelledError } from './errors.js';
import type { TinkerFuture } from './TinkerFuture.js';

/** What every call of every client takes, in its last options object. */
export interface CallOptions {
  /**
   * Cancels the call when it aborts, as `future.cancel()` does: the future rejects with a CancelledError whose `cause` is
   * the signal's reason. A signal that has aborted already sends nothing. Any number of calls may share one.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds the whole call may take: its turn, retries, pauses and the wait for its result included. Then it is
   * cancelled, and the future rejects with an APITimeoutError. Default: no limit.
   */
  readonly timeoutMs?: number | undefined;
}

/**
 * The names of all options that a call takes: its own, which do not compile when one is missing, and those of every call. A
 * call refuses any other, so that a misspelt option is not silently ignored.
 */
export const optionNames = <T extends object>(
  own: Readonly<Record<Exclude<keyof T, keyof CallOptions>, true>>,
): ReadonlySet<string> => new Set([...Object.keys(own), 'signal', 'timeoutMs' satisfies keyof CallOptions]);

/** What every call takes. */
export const CALL_OPTIONS: ReadonlySet<string> = optionNames<CallOptions>({});

/** The options without those that are not sent. */
export function withoutCallOptions<T extends CallOptions>(options: T): Omit<T, keyof CallOptions> {
  // Callers without types may give null, which is refused when the call starts.
  const { signal: _, timeoutMs: __, ...rest } = options ?? {};
  return rest;
}

/** @throws ValidationError for limits that make no sense, CancelledError if the signal has aborted already. */
export function checkLimits({ signal, timeoutMs }: CallOptions): void {
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw new ValidationError(`timeoutMs must be a number > 0, got ${String(timeoutMs)}`);
  if (signal === undefined) return;
  if (typeof (signal as Partial<AbortSignal> | null)?.addEventListener !== 'function')
    throw new ValidationError('signal must be an AbortSignal');
  if (signal.aborted) throw aborted(signal);
}

const aborted = (signal: AbortSignal, requestId?: string): CancelledError =>
  new CancelledError('the signal of this request was aborted', { cause: signal.reason, requestId });

/** Lets the options end the future. Unsubscribe when the future is settled. */
export function bind(
  future: TinkerFuture<unknown>,
  { signal, timeoutMs }: CallOptions,
  scheduler: SchedulerLike,
): Subscription {
  const bound = new Subscription();
  if (signal !== undefined) bound.add(onAbort(signal, () => future.abandon(aborted(signal, future.requestId))));
  if (timeoutMs !== undefined && timeoutMs <= LONGEST_TIMER_MS) {
    const late = (): void => {
      const { requestId } = future;
      future.abandon(
        new APITimeoutError(`no result within ${timeoutMs} ms, the timeoutMs of this call`, { requestId }),
      );
    };
    bound.add(scheduler.schedule(late, timeoutMs));
  }
  return bound;
}

/** One listener per signal: Node warns of more than ten, and thousands of samples may share a signal. */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

function onAbort(signal: AbortSignal, act: () => void): () => void {
  const acts = listening.get(signal) ?? new Set();
  if (!listening.has(signal)) {
    listening.set(signal, acts);
    signal.addEventListener('abort', () => [...acts].forEach((each) => each()), { once: true });
  }
  acts.add(act);
  return () => void acts.delete(act);
}
