import { concatMap, of, throwError, timer, type Observable, type SchedulerLike } from 'rxjs';
import { TransportFailure, type TransportResponse } from '../transport/Transport.js';

/** What a request gets: a response, no response, or whatever an Observable (a marble diagram) makes of it. */
export type Answer = TransportResponse | TransportFailure | Observable<TransportResponse>;

const utf8 = new TextEncoder();
type Headers = Readonly<Record<string, string>>;

/** A JSON response. Status 200 unless given. */
export const json = (
  body: unknown,
  { status = 200, headers = {} }: { readonly status?: number; readonly headers?: Headers } = {},
): TransportResponse => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: utf8.encode(JSON.stringify(body)),
});

/** A refusal such as `refusal(429, 'slow down', { 'retry-after': '2' })`; the text becomes the service's `detail`. */
export const refusal = (status: number, detail = `status ${status}`, headers: Headers = {}): TransportResponse =>
  json({ detail }, { status, headers });

/** A response that is not JSON, as proxies and crashed servers send it. */
export const text = (status: number, body = '', headers: Headers = {}): TransportResponse => ({
  status,
  headers: { 'content-type': 'text/plain', ...headers },
  body: utf8.encode(body),
});

/** A response with a protobuf body, status 200. */
export const protobuf = (body: Uint8Array): TransportResponse => ({
  status: 200,
  headers: { 'content-type': 'application/x-protobuf' },
  body,
});

/** No answer at all: the connection broke. */
export const dropped = (message = 'the connection was reset'): TransportFailure =>
  new TransportFailure('connection', message);

/** The same answer, later. */
export const after = (delayMs: number, answer: Answer, scheduler: SchedulerLike): Observable<TransportResponse> =>
  timer(delayMs, scheduler).pipe(concatMap(() => toObservable(answer)));

export function toObservable(answer: Answer): Observable<TransportResponse> {
  if (answer instanceof TransportFailure) return throwError(() => answer);
  return 'status' in answer ? of(answer) : answer;
}
