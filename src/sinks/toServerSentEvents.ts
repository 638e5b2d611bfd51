import type { IncomingMessage, ServerResponse } from 'node:http';
import { asyncScheduler, interval, type Observable, type SchedulerLike, Subscription } from 'rxjs';
import { messageOf } from '../support/messageOf.js';
import { checkAtLeast, checkPositive } from '../support/checks.js';
import { SSE_COMPLETE } from '../support/http/sseComplete.js';
import { jsonLine } from '../support/files/jsonLine.js';

/** Options of `toServerSentEvents`. */
export interface ToServerSentEventsOptions<T> {
  /** What to send for a value; sent as JSON. Default: the value. */
  readonly encode?: (value: T) => unknown;
  /** The type of a value's event. Default 'message'. */
  readonly type?: (value: T) => string;
  /** How many of the last events a client that comes, or comes back, is given: an integer ≥ 0. Default 1000. */
  readonly replay?: number;
  /** How often a comment is sent to keep the connection alive, in milliseconds. Default 15,000. */
  readonly keepAliveMs?: number;
  /** How much may wait for a client that reads slowly before it is let go; it may come back. Default 4 MiB. */
  readonly maxWaitingBytes?: number;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** A stream on its way to any number of browsers. */
export interface ServerSentEventsSink {
  /** Answers a request with the events; hand it to `http.createServer` or call it from a router. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** How many clients are connected. */
  readonly clients: number;
  /** Unsubscribes from the stream and ends all connections. */
  close(): void;
}

interface Sent {
  readonly number: number;
  readonly text: string;
}

/**
 * Sends a stream to browsers as server-sent events, with replay for those who come late or come back.
 *
 * ```ts
 * const sink = toServerSentEvents(service.events$, { type: (event) => event.type });
 * http.createServer(sink.handle).listen(8080);
 * ```
 * Subscribes to the source at once, and once for all clients. Each event has an id; a client that reconnects with the
 * id of the last one it saw gets what came since, as far as it is still held. When the source completes, clients get
 * what they lack and an event of type 'complete', and the connection ends; further requests are answered with 204: there
 * will be no more. A page hears it with `events.addEventListener('complete', () => events.close())`. An error of the source
 * is sent as an event of type 'error' with its message instead. A value for which `type` or `encode`
 * throws, or that is not JSON (it holds itself), is sent as an event of type 'unsendable' with the message; the others
 * follow. A client that reads too slowly is disconnected; others do not wait for it. Holds the last `replay` events.
 *
 * @see fromServerSentEvents
 */
export function toServerSentEvents<T>(
  source: Observable<T>,
  {
    encode = (value) => value,
    type = () => 'message',
    replay = 1000,
    keepAliveMs = 15_000,
    maxWaitingBytes = 4 * 1024 * 1024,
    scheduler = asyncScheduler,
  }: ToServerSentEventsOptions<T> = {},
): ServerSentEventsSink {
  checkAtLeast({ replay }, 0);
  checkPositive({ keepAliveMs });
  // Ids of another run of the server must not pass for ours.
  const run = scheduler.now().toString(36);
  const held: Sent[] = [];
  const clients = new Set<ServerResponse>();
  const running = new Subscription();
  let number = 0;
  let ended = false;

  const write = (client: ServerResponse, text: string) => {
    client.write(text);
    if (client.writableLength > maxWaitingBytes) client.destroy();
  };
  /** The fields of the event for a value; if the value cannot be encoded, those of an error event. */
  const fieldsOf = (value: T): string => {
    try {
      return fields(type(value), encode(value));
    } catch (error) {
      return fields('unsendable', { message: messageOf(error) });
    }
  };
  const send = (fields: string) => {
    number++;
    const text = `id: ${run}-${number}\n${fields}`;
    held.push({ number, text });
    if (held.length > replay) held.shift();
    for (const client of clients) write(client, text);
  };
  const end = () => {
    ended = true;
    running.unsubscribe();
    for (const client of clients) client.end();
  };

  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const seen = lastSeen(request.headers['last-event-id'], run);
    const missed = held.filter((event) => event.number > seen);
    if (ended && missed.length === 0) {
      response.writeHead(204).end();
      return;
    }
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    response.write(': hello\n\n');
    for (const { text } of missed) response.write(text);
    if (ended) {
      response.end();
      return;
    }
    clients.add(response);
    response.on('close', () => clients.delete(response));
    // A client may go away while it is written to; that is not an error.
    response.on('error', () => clients.delete(response));
  };

  running.add(
    interval(keepAliveMs, scheduler).subscribe(() => {
      for (const client of clients) write(client, ': still here\n\n');
    }),
  );
  running.add(
    source.subscribe({
      next: (value) => send(fieldsOf(value)),
      error: (error: unknown) => {
        send(fields('error', { message: messageOf(error) }));
        end();
      },
      complete: () => {
        send(`event: ${SSE_COMPLETE.type}\ndata: ${SSE_COMPLETE.data}\n\n`);
        end();
      },
    }),
  );
  return {
    handle,
    get clients() {
      return clients.size;
    },
    close: end,
  };
}

const fields = (kind: string, value: unknown): string =>
  `event: ${kind.replace(/[\r\n]/g, ' ')}\ndata: ${jsonLine(value)}\n`;

/** The number of the last event a client has seen of this run; 0 if it has seen none. */
function lastSeen(header: string | string[] | undefined, run: string): number {
  const [of, number] = String(header ?? '').split('-');
  return of === run && number !== undefined && /^\d+$/.test(number) ? Number(number) : 0;
}
