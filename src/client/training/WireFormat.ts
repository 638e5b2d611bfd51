import type { Observable } from 'rxjs';
import { catchError, defer, tap } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { APIStatusError } from '../errors.js';
import type { EventBus } from '../events.js';

/**
 * Whether a service takes protobuf, learned from its answers and remembered.
 *
 * Until it has accepted protobuf once, a refusal that may be about the format (415, 422, or a 5xx that is no JSON, as
 * SkyRL answers) means: the same request as JSON. If the service takes that, JSON it is from then on.
 */
export class WireFormat {
  #format: 'protobuf' | 'json' | undefined;

  constructor(readonly events: EventBus) {}

  /** A server that takes only JSON also works by arrival, not by number: send it one thing after the other. */
  get byArrival(): boolean {
    return this.#format === 'json';
  }

  send(
    protobuf: () => Observable<TransportResponse>,
    json: () => Observable<TransportResponse>,
  ): Observable<TransportResponse> {
    return defer(() => {
      if (this.#format === 'json') return json();
      return protobuf().pipe(
        tap(() => this.#choose('protobuf', 'the service accepted it')),
        catchError((error: unknown) => {
          if (this.#format === 'protobuf' || !mayBeAboutFormat(error)) throw error;
          return json().pipe(
            tap(() => this.#choose('json', `the service answered ${(error as APIStatusError).status} to protobuf`)),
          );
        }),
      );
    });
  }

  #choose(format: 'protobuf' | 'json', reason: string): void {
    if (this.#format !== undefined) return;
    this.#format = format;
    this.events.emit({ type: 'protocol-chosen', format, reason });
  }
}

function mayBeAboutFormat(error: unknown): boolean {
  if (!(error instanceof APIStatusError)) return false;
  const { status, headers } = error;
  return status === 415 || status === 422 || (status >= 500 && !/\bjson\b/.test(headers['content-type'] ?? ''));
}
