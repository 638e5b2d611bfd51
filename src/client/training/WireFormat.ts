import type { Observable } from 'rxjs';
import { catchError, defer, tap } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { APIStatusError, type TinkerError } from '../errors.js';
import type { EventBus } from '../events.js';

/**
 * Whether a service takes protobuf, learned from its answers and remembered.
 *
 * Until it has accepted protobuf once, a refusal that may be about the format (415, 422, or a 5xx that is not JSON, as
 * SkyRL answers) means: send the same request as JSON, until the service has answered that. If it accepts JSON, JSON is used from then on. If it
 * refuses JSON as well after a 5xx, the 5xx counts and is retried.
 */
export class WireFormat {
  #format: 'protobuf' | 'json' | undefined;
  /** A server that takes only JSON also works by arrival, not by number: send it one request after the other. */
  byArrival = false;

  constructor(readonly events: EventBus) {}

  /** One try per subscription. */
  send(
    protobuf: () => Observable<TransportResponse>,
    json: () => Observable<TransportResponse>,
  ): Observable<TransportResponse> {
    let serverErrors = 0;
    /** Why JSON is being tried; undefined before protobuf was refused, and once JSON was answered. */
    let refused: APIStatusError | undefined;
    const tryJson = (why: APIStatusError): Observable<TransportResponse> => {
      refused = why;
      return json().pipe(
        tap(() => this.#choose('json', `the service answered ${why.status} to protobuf`)),
        catchError((refusal: TinkerError) => {
          // Without an answer nothing is known about JSON: the next try continues with it.
          if (!(refusal instanceof APIStatusError)) throw refusal;
          refused = undefined;
          // The refusal may only mean that this service takes no JSON: the temporary failure is the one to retry.
          if (!refusal.retryable && mayPass(why, ++serverErrors)) throw why;
          throw refusal;
        }),
      );
    };
    return defer(() => {
      if (this.#format === 'json') return json();
      if (this.#format === 'protobuf') return protobuf();
      if (refused !== undefined) return tryJson(refused);
      return protobuf().pipe(
        tap(() => this.#choose('protobuf', 'the service accepted it')),
        catchError((error: unknown) => {
          if (this.#format !== undefined || !mayBeAboutFormat(error)) throw error;
          return tryJson(error);
        }),
      );
    });
  }

  #choose(format: 'protobuf' | 'json', reason: string): void {
    if (this.#format !== undefined) return;
    this.#format = format;
    this.byArrival = format === 'json';
    this.events.emit({ type: 'protocol-chosen', format, reason });
  }
}

function mayBeAboutFormat(error: unknown): error is APIStatusError {
  if (!(error instanceof APIStatusError)) return false;
  const { status, headers } = error;
  return status === 415 || status === 422 || (status >= 500 && !/\bjson\b/.test(headers['content-type'] ?? ''));
}

const MOST_SERVER_ERRORS = 3;

/**
 * Whether a refusal of protobuf is a temporary failure. A gateway's always is. A plain 500 may be how this server refuses
 * protobuf (SkyRL's does): the third time it is taken for that, and the answer to the JSON request counts.
 */
const mayPass = ({ status }: APIStatusError, times: number): boolean =>
  status > 500 || (status === 500 && times < MOST_SERVER_ERRORS);
