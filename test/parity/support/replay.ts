import {
  NEVER,
  Subject,
  asapScheduler,
  defer,
  filter,
  map,
  observeOn,
  of,
  startWith,
  take,
  type Observable,
} from 'rxjs';
import type { Transport, TransportRequest, TransportResponse } from '../../../src/transport/Transport.js';
import { fromBase64, type Exchange, type RecordedResponse, type SdkFixture } from './fixture.js';

/** A request of ours, kept as it was handed to the transport. */
export interface Sent {
  readonly request: TransportRequest;
  /** Below `/api/v1/`, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** What of a body says which turn or promise it belongs to. */
interface Numbers {
  readonly request_id?: string;
  readonly seq_id?: number;
}
type Body = Numbers | undefined;
const jsonOf = (body: TransportRequest['body']): Body =>
  typeof body === 'string' && body !== '' ? (JSON.parse(body) as Body) : undefined;

/**
 * A transport that answers as the recording server answered the SDK: a poll by its request id, everything else by
 * method, path and seq id, in the recorded order, the last answer over and over. An answer that never came is held.
 */
export class Replay {
  readonly sent: Sent[] = [];
  readonly #fixture: SdkFixture;
  readonly #given = new Map<string, number>();
  readonly #promised = new Set<string>();
  readonly #news = new Subject<void>();

  constructor(fixture: SdkFixture) {
    this.#fixture = fixture;
  }

  readonly transport: Transport = (request) =>
    defer(() => {
      const { pathname, searchParams } = new URL(request.path, 'http://service.test');
      const sent = { request, path: pathname.replace(/^\/api\/v1\//, ''), query: searchParams };
      this.sent.push(sent);
      return this.#answer(sent).pipe(observeOn(asapScheduler));
    });

  #answer({ request, path }: Sent): Observable<TransportResponse> {
    const body = jsonOf(request.body);
    if (path === 'retrieve_future') {
      const requestId = body?.request_id ?? '';
      const polls = this.#fixture.polls[requestId];
      return polls === undefined ? NEVER : of(toResponse(this.#next(`poll ${requestId}`, polls).response));
    }
    const candidates = this.#fixture.exchanges.filter(
      (exchange) =>
        exchange.request.method === request.method &&
        decodeURIComponent(exchange.request.path) === decodeURIComponent(path) &&
        isSameTurn(exchange, body),
    );
    if (candidates.length === 0) return of(unrecorded(path));
    const { response } = this.#next(`${request.method} ${path} ${body?.seq_id}`, candidates);
    if (response.status === 0) return NEVER;
    this.#note(response);
    return path === 'retrieve_futures' ? this.#whenPromised(response) : of(toResponse(response));
  }

  #next(key: string, exchanges: readonly Exchange[]): Exchange {
    const index = this.#given.get(key) ?? 0;
    this.#given.set(key, index + 1);
    return exchanges[Math.min(index, exchanges.length - 1)]!;
  }

  #note(response: RecordedResponse): void {
    const requestId = (response.json as Body)?.request_id;
    if (typeof requestId !== 'string') return;
    this.#promised.add(requestId);
    this.#news.next();
  }

  /** A completion cannot be told before its request was there. */
  #whenPromised(response: RecordedResponse): Observable<TransportResponse> {
    const { completions } = response.json as unknown as { completions: readonly { request_id: string }[] };
    return this.#news.pipe(
      startWith(undefined),
      filter(() => completions.length > 0 && completions.every(({ request_id: id }) => this.#promised.has(id))),
      take(1),
      map(() => toResponse(response)),
    );
  }
}

function isSameTurn({ request }: Exchange, body: Body): boolean {
  const seqId = body?.seq_id;
  if (seqId === undefined || request.body === undefined || !('json' in request.body)) return true;
  return (request.body.json as Body)?.seq_id === seqId;
}

function toResponse({ status, headers, json, protobuf }: RecordedResponse): TransportResponse {
  if (protobuf !== undefined)
    return { status, headers: { ...headers, 'content-type': 'application/x-protobuf' }, body: fromBase64(protobuf) };
  if (json === undefined) return { status, headers: { ...headers }, body: new Uint8Array() };
  const body = new TextEncoder().encode(JSON.stringify(json));
  return { status, headers: { ...headers, 'content-type': 'application/json' }, body };
}

const unrecorded = (path: string): TransportResponse =>
  toResponse({ status: 404, json: { detail: `${path} is not in the recording` } });
