import { Subscriber, type SchedulerLike, type Subscription } from 'rxjs';
import { TransportFailure, type TransportResponse } from '../../transport/Transport.js';
import type { Call, Connection } from './Connection.js';
import { connectionError } from './failure.js';

/** Reads the one answer of a request: one subscriber instead of operators, since thousands may be in flight. */
export class Answer extends Subscriber<TransportResponse> {
  private answered = false;
  private late: Subscription | undefined;

  constructor(
    private readonly to: Subscriber<TransportResponse>,
    private readonly call: Call,
    private readonly connection: Connection,
  ) {
    super();
    to.add(this);
  }

  /** For transports that do not time out by themselves. */
  limit(scheduler: SchedulerLike, timeoutMs: number): void {
    const late = (): void => this.error(new TransportFailure('timeout', `no answer within ${timeoutMs / 1000} s`));
    this.late = scheduler.schedule(late, timeoutMs);
    this.add(this.late);
  }

  protected override _next(response: TransportResponse): void {
    this.answered = true;
    this.late?.unsubscribe();
    if (response.headers['x-deprecation-note'] !== undefined) this.connection.noteDeprecation(response, this.call);
    const { status } = response;
    if ((status >= 200 && status < 300) || status === this.call.alsoAnswer) this.to.next(response);
    else this.to.error(this.connection.refusal(response, this.call));
  }

  protected override _error(error: unknown): void {
    this.unsubscribe();
    const { method = 'POST', path } = this.call;
    this.to.error(error instanceof TransportFailure ? connectionError(error, `${method} /api/v1/${path}`) : error);
  }

  protected override _complete(): void {
    // A custom transport may end like this; without an answer the call would succeed with nothing.
    if (!this.answered) return this._error(new TransportFailure('connection', 'the transport ended without an answer'));
    this.unsubscribe();
    this.to.complete();
  }
}
