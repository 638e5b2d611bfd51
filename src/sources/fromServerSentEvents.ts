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
import { checkAtLeast, checkPositive } from '../support/checks.js';
import { currentGate, underGate } from '../operators/pressure/gate.js';
import { SSE_COMPLETE } from '../support/http/sseComplete.js';
import { TinkerError } from '../wire/tinkerError.js';
import { fromRowBatches } from './fromRowBatches.js';
import { type ServerSentEvent, ServerSentEventParser } from '../support/http/ServerSentEventParser.js';

export type { ServerSentEvent };

/** The server refused an event stream; `status` says how. */
export class ServerSentEventsError extends TinkerError {
  readonly code = 'event_stream';
  /** The HTTP status of the response. */
  readonly status: number;

  constructor(status: number, reason: string) {
    super(reason, { retryable: status === 408 || status === 429 || status >= 500 });
    this.status = status;
  }
}

/** Options of `fromServerSentEvents`. */
export interface ServerSentEventsOptions {
  /** Sent with every request. Default none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The id of the last event received, to continue after it. Default: none, so the server decides where to start. */
  readonly lastEventId?: string;
  /** The wait before a reconnect, until the server names its own, of at least 100: ≥ 0. Default 1000. It doubles while reconnects fail. */
  readonly retryMs?: number;
  /** The longest wait before a reconnect, unless the server names a longer one, of at most an hour. Default 30 000. */
  readonly maxRetryMs?: number;
  /** The longest event that is taken, in characters: > 0. A longer one is an error. Default 67 108 864. */
  readonly maxEventLength?: number;
  /** Told when a connection is asked for, is open, and is lost. */
  readonly onState?: (state: 'connecting' | 'open' | 'lost') => void;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** The shortest and the longest wait that a server may ask for: `retry: 0` would be hundreds of connections a second. */
const SHORTEST_MS = 100;
const LONGEST_MS = 3_600_000;
const MOST_A_TIMER_TAKES_MS = 2 ** 31 - 1;

/**
 * The events of a server, over as many connections as it takes. Runs in Node and in browsers.
 *
 * ```ts
 * fromServerSentEvents('/events').pipe(map(({ data }) => JSON.parse(data)))
 * ```
 * When a connection ends or breaks, it asks again after a wait, with the id of the last event, so that a server that
 * replays loses nothing. It completes at the event `complete` of `toServerSentEvents`, and like a browser's EventSource when
 * the server answers 204; unlike one it can send
 * headers, and tries again after 408, 429 and 5xx. Any other refusal, and an event that is too long, is a
 * {@link ServerSentEventsError}. An address or a header that cannot be sent is a RangeError, at the call.
 * Unsubscribing closes the connection. While the bounded operator downstream is full it stops reading.
 */
export function fromServerSentEvents(
  url: string | URL,
  {
    headers = {},
    lastEventId = '',
    retryMs = 1000,
    maxRetryMs = 30_000,
    maxEventLength = 64 * 1024 * 1024,
    onState = () => {},
    fetch = globalThis.fetch,
    scheduler = asyncScheduler,
  }: ServerSentEventsOptions = {},
): Observable<ServerSentEvent> {
  checkAtLeast({ retryMs }, 0);
  checkPositive({ maxEventLength });
  checkRequest(url, headers);
  return defer(() => {
    let last = lastEventId;
    let waitMs = retryMs;
    let over = false;

    async function* connect(signal: AbortSignal): AsyncGenerator<ServerSentEvent[]> {
      onState('connecting');
      const resume: Record<string, string> = last === '' ? {} : { 'last-event-id': utf8AsLatin1(last) };
      const response = await ask(fetch, url, { accept: 'text/event-stream', ...resume }, headers, signal);
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
      const parser = new ServerSentEventParser(last, maxEventLength);
      const decoder = new TextDecoder();
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const events = eventsIn(parser, decoder.decode(value, { stream: true }));
        const end = events.findIndex(({ type, data }) => type === SSE_COMPLETE.type && data === SSE_COMPLETE.data);
        if (end >= 0) {
          over = true;
          yield events.slice(0, end);
          return reader.cancel();
        }
        yield events;
        last = parser.lastEventId;
        if (parser.retryMs !== undefined) waitMs = Math.min(Math.max(parser.retryMs, SHORTEST_MS), LONGEST_MS);
      }
    }

    const lost = (attempt: number) => {
      onState('lost');
      // A timer that is asked for more than it can count fires at once.
      const limitMs = Math.min(Math.max(maxRetryMs, waitMs), MOST_A_TIMER_TAKES_MS);
      return timer(Math.min(limitMs, waitMs * 2 ** (attempt - 1)), scheduler);
    };
    return underGate(currentGate(), fromRowBatches(connect, { name: 'fromServerSentEvents' })).pipe(
      repeat({ delay: () => (over ? EMPTY : lost(1)) }),
      retry({
        delay: (error: unknown, attempt) =>
          error instanceof ServerSentEventsError && !error.retryable ? throwError(() => error) : lost(attempt),
        resetOnSuccess: true,
      }),
    );
  });
}

/** What can never be sent is refused once, and not tried again forever. Neither passwords nor headers are told. */
function checkRequest(url: string | URL, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!canBeMade(() => new Headers([[name, value]]))) throw new RangeError(`the header '${name}' cannot be sent`);
  }
  const address = withoutPassword(String(url));
  if (!canBeMade(() => new Request(url))) {
    throw new RangeError(
      `cannot ask for events at '${address}': give a whole http: or https: address without a password`,
    );
  }
  const { protocol } = new URL(new Request(url).url);
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw new RangeError(`cannot ask for events at '${address}': ${protocol} is neither http: nor https:`);
  }
}

const MOST_REDIRECTS = 20;

/**
 * Asks for the stream. The caller's headers, which may be a key, go to the address they were given for and no further: a
 * redirect to another host is followed without them. (`fetch` itself would take only `authorization` off.)
 */
async function ask(
  fetch: typeof globalThis.fetch,
  url: string | URL,
  usual: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  if (Object.keys(own).length === 0) return fetch(url, { headers: usual, signal });
  const home = new URL(new Request(url).url).origin;
  let at = new Request(url).url;
  let headers: Readonly<Record<string, string>> = { ...usual, ...own };
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const response = await fetch(at, { headers, signal, redirect: 'manual' });
    // A browser does not tell where to.
    if (response.type === 'opaqueredirect')
      throw new ServerSentEventsError(308, 'the server redirects: give the address that it redirects to');
    const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null;
    if (location === null) return response;
    await response.body?.cancel();
    if (!URL.canParse(location, at))
      throw new ServerSentEventsError(response.status, 'the server redirects to no address');
    const next = new URL(location, at);
    if (next.origin !== home) headers = usual;
    at = next.href;
  }
  throw new ServerSentEventsError(310, `the server redirects more than ${MOST_REDIRECTS} times`);
}

function canBeMade(make: () => unknown): boolean {
  try {
    make();
    return true;
  } catch {
    return false;
  }
}

const withoutPassword = (text: string): string => text.replace(/\/\/[^/@\s]*@/g, '//…@');

/** A header takes one byte a character: text goes as the bytes of its UTF-8, as browsers send it. */
function utf8AsLatin1(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
}

function eventsIn(parser: ServerSentEventParser, text: string): ServerSentEvent[] {
  try {
    return parser.push(text);
  } catch (cause) {
    throw new ServerSentEventsError(200, (cause as Error).message);
  }
}
