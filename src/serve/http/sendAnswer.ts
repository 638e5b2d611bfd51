import type { ServerResponse } from 'node:http';
import { Subscription, type Observable } from 'rxjs';
import type { Answer, ForwardedAnswer } from './Endpoint.js';
import { GatewayError, toGatewayError } from './GatewayError.js';

export interface SendOptions {
  /** Most time from the request to its complete answer. */
  readonly timeoutMs: number;
  /** Most time for a caller to read what was written. */
  readonly writeTimeoutMs: number;
  /** How often a quiet stream says that it is alive. */
  readonly heartbeatMs: number;
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' };
const EVENT_TYPE = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would collect the events before it passes them on.
  'x-accel-buffering': 'no',
};
/** A header is one line of plain characters, and not too long. */
const MOST_WARNING_CHARS = 1000;

/**
 * Writes an answer, and resolves when it is written or its caller is gone, which cancels what is in flight.
 *
 * The headers of a stream wait for its first event, so that a failure before it has its own status. A stream that is
 * quiet for `heartbeatMs` sends a comment, which proxies count as activity and clients skip.
 */
export function sendAnswer(
  answers: Observable<Answer>,
  response: ServerResponse,
  refusal: (error: GatewayError) => object,
  options: SendOptions,
): Promise<void> {
  return new Promise((resolve) => {
    const work = new Subscription();
    const cutOff = readDeadline(response, options.writeTimeoutMs, work);
    const fail = (error: unknown): void => {
      work.unsubscribe();
      sendRefusal(toGatewayError(error), response, refusal);
    };
    const late = setTimeout(
      () => fail(new GatewayError(504, `no answer within ${options.timeoutMs} ms`)),
      options.timeoutMs,
    );
    work.add(() => clearTimeout(late));
    response.once('close', () => {
      work.unsubscribe();
      resolve();
    });
    if (response.destroyed) return resolve();
    const answered = (found: Answer): void => {
      if (found.warnings !== undefined && found.warnings.length > 0) {
        response.setHeader('x-gateway-warning', headerText(found.warnings.join('; ')));
      }
      if ('json' in found) {
        clearTimeout(late);
        sendJson(found.json, response);
        return cutOff();
      }
      if ('bytes' in found) {
        work.add(passOn(found, response, { cutOff, ended: () => clearTimeout(late) }));
        return;
      }
      const begin = (): void => {
        if (!response.headersSent) response.writeHead(200, EVENT_TYPE);
      };
      const beat = setInterval(() => {
        begin();
        if (!response.write(': keep-alive\n\n')) cutOff();
      }, options.heartbeatMs);
      work.add(() => clearInterval(beat));
      const next = (text: string): void => {
        begin();
        beat.refresh();
        if (!response.write(text)) cutOff();
      };
      const complete = (): void => {
        clearInterval(beat);
        clearTimeout(late);
        begin();
        response.end();
        cutOff();
      };
      work.add(found.events.subscribe({ next, error: fail, complete }));
    };
    work.add(answers.subscribe({ next: answered, error: fail }));
  });
}

/** Writes what another service says, as it comes. One that breaks off is cut off here, too, so that the caller notices. */
function passOn(
  { status, contentType, retryAfter, bytes }: ForwardedAnswer,
  response: ServerResponse,
  { cutOff, ended }: { readonly cutOff: () => void; readonly ended: () => void },
): Subscription {
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
  const quick = contentType.includes('event-stream') ? EVENT_TYPE : {};
  response.writeHead(status, { ...quick, 'content-type': contentType, 'x-content-type-options': 'nosniff' });
  return bytes.subscribe({
    next: (part) => {
      if (!response.write(part)) cutOff();
    },
    error: () => response.destroy(),
    complete: () => {
      ended();
      response.end();
      cutOff();
    },
  });
}

/** An error as the whole answer, or as the last event of a stream that has begun. */
export function sendRefusal(
  error: GatewayError,
  response: ServerResponse,
  refusal: (error: GatewayError) => object,
): void {
  if (response.destroyed || response.writableEnded) return;
  if (response.headersSent) {
    response.end(`event: error\ndata: ${JSON.stringify(refusal(error))}\n\n`);
    return;
  }
  const { retryAfterSeconds } = error.extra;
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds);
  if (error.status === 413 || error.status === 408) response.setHeader('connection', 'close');
  response.writeHead(error.status, JSON_TYPE).end(JSON.stringify(refusal(error)));
}

function sendJson(json: unknown, response: ServerResponse): void {
  const body = Buffer.from(JSON.stringify(json));
  // Set one by one: spreading objects with such keys is slow.
  for (const name in JSON_TYPE) response.setHeader(name, JSON_TYPE[name as keyof typeof JSON_TYPE]);
  response.setHeader('content-length', body.length);
  response.end(body);
}

/** Disconnects a caller that does not read in time: it would hold memory forever. */
function readDeadline(response: ServerResponse, timeoutMs: number, work: Subscription): () => void {
  let stuck: NodeJS.Timeout | undefined;
  const drained = (): void => {
    clearTimeout(stuck);
    stuck = undefined;
  };
  return () => {
    if (stuck !== undefined || !(response.writableLength > 0)) return;
    stuck = setTimeout(() => response.destroy(), timeoutMs);
    response.once('drain', drained);
    work.add(drained);
  };
}

const headerText = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MOST_WARNING_CHARS);
