import {
  asyncScheduler,
  defer,
  EMPTY,
  type Observable,
  repeat,
  retry,
  type SchedulerLike,
  throwError,
  timer,
} from 'rxjs';
import { currentGate } from '../operators/gate.js';
import { underGate } from '../operators/internal/underGate.js';
import { TinkerError } from '../wire/tinkerError.js';
import { fromRowBatches } from './fromRowBatches.js';
import { type ServerSentEvent, ServerSentEventParser } from './internal/serverSentEventParser.js';

export type { ServerSentEvent };

/** The server refused an event stream; `status` says how. */
export class ServerSentEventsError extends TinkerError {
  readonly code = 'event_stream';
  readonly status: number;

  constructor(status: number, reason: string) {
    super(reason, { retryable: status === 408 || status === 429 || status >= 500 });
    this.status = status;
  }
}

export interface ServerSentEventsOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** The id to go on after. Default: none, from wherever the server begins. */
  readonly lastEventId?: string;
  /** The wait before a reconnect, until the server names its own: ≥ 0. Default 1000. It doubles while reconnects fail. */
  readonly retryMs?: number;
  /** The longest wait before a reconnect, unless the server names a longer one. Default 30 000. */
  readonly maxRetryMs?: number;
  /** Told when a connection is asked for, is open, and is lost. */
  readonly onState?: (state: 'connecting' | 'open' | 'lost') => void;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * The events of a server, over as many connections as it takes. Runs in Node and in browsers.
 *
 * ```ts
 * fromServerSentEvents('/events').pipe(map(({ data }) => JSON.parse(data)))
 * ```
 * When a connection ends or breaks, it asks again after a wait, with the id of the last event, so that a server that
 * replays loses nothing. Like a browser's EventSource it completes when the server answers 204; unlike one it can send
 * headers, and tries again after 408, 429 and 5xx. Any other refusal is a {@link ServerSentEventsError}.
 * Unsubscribing closes the connection. While the bounded operator downstream is full it stops reading.
 */
export function fromServerSentEvents(
  url: string | URL,
  {
    headers = {},
    lastEventId = '',
    retryMs = 1000,
    maxRetryMs = 30_000,
    onState = () => {},
    fetch = globalThis.fetch,
    scheduler = asyncScheduler,
  }: ServerSentEventsOptions = {},
): Observable<ServerSentEvent> {
  if (!(retryMs >= 0)) throw new RangeError(`retryMs must be >= 0, got ${retryMs}`);
  return defer(() => {
    let last = lastEventId;
    let waitMs = retryMs;
    let over = false;

    async function* connect(signal: AbortSignal): AsyncGenerator<ServerSentEvent[]> {
      onState('connecting');
      const resume: Record<string, string> = last === '' ? {} : { 'last-event-id': last };
      const response = await fetch(url, {
        headers: { accept: 'text/event-stream', ...headers, ...resume },
        signal,
      });
      if (response.status === 204) {
        over = true;
        return;
      }
      const type = response.headers.get('content-type') ?? '';
      if (response.status !== 200 || !type.startsWith('text/event-stream') || response.body === null) {
        await response.body?.cancel();
        throw new ServerSentEventsError(
          response.status,
          response.status === 200
            ? `expected an event stream, got ${type || 'no content type'}`
            : `the server answered ${response.status}`,
        );
      }
      onState('open');
      const parser = new ServerSentEventParser(last);
      const decoder = new TextDecoder();
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield parser.push(decoder.decode(value, { stream: true }));
        last = parser.lastEventId;
        waitMs = parser.retryMs ?? waitMs;
      }
    }

    const lost = (attempt: number) => {
      onState('lost');
      return timer(Math.min(Math.max(maxRetryMs, waitMs), waitMs * 2 ** (attempt - 1)), scheduler);
    };
    return underGate(currentGate(), fromRowBatches(connect)).pipe(
      repeat({ delay: () => (over ? EMPTY : lost(1)) }),
      retry({
        delay: (error: unknown, attempt) =>
          error instanceof ServerSentEventsError && !error.retryable ? throwError(() => error) : lost(attempt),
        resetOnSuccess: true,
      }),
    );
  });
}
