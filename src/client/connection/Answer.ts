import type { Observer, SchedulerLike, Subscriber, Subscription } from 'rxjs';
import { TransportFailure, type TransportResponse } from '../../transport/Transport.js';
import type { Call, Connection } from './Connection.js';
import { connectionError } from './failure.js';

/** Reads the one answer of a request: an object instead of closures, since thousands may be in flight. */
export class Answer implements Observer<TransportResponse> {
  #answered = false;
  #late: Subscription | undefined;

  constructor(
    readonly subscriber: Subscriber<TransportResponse>,
    readonly call: Call,
    readonly connection: Connection,
  ) {}

  /** For transports that do not time out by themselves. */
  limit(scheduler: SchedulerLike, timeoutMs: number): void {
    const late = (): void => this.error(new TransportFailure('timeout', `no answer within ${timeoutMs / 1000} s`));
    this.#late = scheduler.schedule(late, timeoutMs);
    this.subscriber.add(this.#late);
  }

  next(response: TransportResponse): void {
    this.#answered = true;
    this.#late?.unsubscribe();
    if (response.headers['x-deprecation-note'] !== undefined) this.connection.noteDeprecation(response, this.call);
    const { status } = response;
    if ((status >= 200 && status < 300) || status === this.call.alsoAnswer) this.subscriber.next(response);
    else this.subscriber.error(this.connection.refusal(response, this.call));
  }

  error(error: unknown): void {
    const { method = 'POST', path } = this.call;
    this.subscriber.error(
      error instanceof TransportFailure ? connectionError(error, `${method} /api/v1/${path}`) : error,
    );
  }

  complete(): void {
    // A custom transport may end like this; without an answer the call would succeed with nothing.
    if (this.#answered) this.subscriber.complete();
    else this.error(new TransportFailure('connection', 'the transport ended without an answer'));
  }
}
