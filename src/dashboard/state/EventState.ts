import type { DashboardEvent, Failure, Note, OpenRequest, Pause, Standing } from './changes.js';
import { Ring } from './Ring.js';
import { Series } from './Series.js';
import { columnsOf } from './columns.js';

const RETRY_KINDS = new Set(['request-retry', 'sample-resubmitted']);
const SECONDS_KEPT = 7200;

/** What the events of a client come to: what is under way, what stands still and why, what failed, how fast it goes. */
export class EventState {
  readonly requests = new Map<string, OpenRequest>();
  readonly pauses = new Ring<Pause>(200);
  readonly failures = new Ring<Failure>(500);
  readonly notes = new Ring<Note>(500);
  /** How often each type of event came. */
  readonly counts: Record<string, number> = {};
  /** By second: `requests` and `samples` that finished in it, `tokens` sampled, `bytes` in flight at its end. */
  readonly clock = new Series(SECONDS_KEPT);
  #bytes = 0;

  get bytesInFlight(): number {
    return this.#bytes;
  }

  apply(event: DashboardEvent): void {
    this.counts[event.type] = (this.counts[event.type] ?? 0) + 1;
    const open = this.requests.get(event.requestId ?? '');
    this.#follow(event);
    this.#notePause(event);
    // What the caller gave up did not fail.
    if ((event.type === 'request-failed' && event.error?.code !== 'cancelled') || event.level === 'error') {
      this.failures.push({
        atMs: event.atMs,
        code: event.error?.code ?? event.type,
        message: event.error?.message ?? event.text ?? '',
        what: event.requestType ?? open?.requestType ?? event.path ?? '',
        ...(event.requestId === undefined ? {} : { requestId: event.requestId }),
      });
    }
    if (event.text !== undefined && event.level !== 'debug') {
      this.notes.push({ atMs: event.atMs, level: event.level ?? 'info', text: event.text });
    }
  }

  /** A sample has come. */
  count(atMs: number, tokens: number): void {
    this.#tick(atMs, { samples: 1, tokens });
  }

  /** The pauses that last at this moment. */
  pausesAt(nowMs: number): Pause[] {
    return this.pauses.toArray().filter(({ untilMs = Infinity }) => untilMs > nowMs);
  }

  standing(): Standing {
    return {
      requests: [...this.requests.values()],
      pauses: this.pauses.toArray(),
      failures: this.failures.toArray(),
      notes: this.notes.toArray(),
      counts: { ...this.counts },
      clock: columnsOf(this.clock, 0, this.clock.length),
    };
  }

  restore({ requests, pauses, failures, notes, counts, clock }: Standing): void {
    for (const request of requests) this.#open(request);
    for (const pause of pauses) this.pauses.push(pause);
    for (const failure of failures) this.failures.push(failure);
    for (const note of notes) this.notes.push(note);
    Object.assign(this.counts, counts);
    this.clock.appendAll(clock.index, clock.columns);
  }

  #follow(event: DashboardEvent): void {
    const { type, requestId, atMs } = event;
    if (requestId === undefined) return;
    switch (type) {
      case 'request-sent':
        this.#open({
          requestId,
          requestType: event.requestType ?? '',
          target: event.target ?? '',
          bytes: event.bytes ?? 0,
          sinceMs: atMs,
          state: 'sent',
        });
        this.#tick(atMs, {});
        return;
      case 'queue-state': {
        const open = this.requests.get(requestId);
        if (open === undefined) return;
        const { reason: _, ...rest } = open;
        const reason = event.reason === undefined ? {} : { reason: event.reason };
        this.requests.set(requestId, { ...rest, state: event.state ?? 'unknown', ...reason });
        return;
      }
      case 'request-finished':
      case 'request-failed':
      case 'request-abandoned': {
        const open = this.requests.get(requestId);
        if (open !== undefined) this.#bytes -= open.bytes;
        this.requests.delete(requestId);
        this.#tick(atMs, type === 'request-finished' && event.requestType === 'Sample' ? { requests: 1 } : {});
        return;
      }
    }
  }

  #open(request: OpenRequest): void {
    this.#bytes += request.bytes - (this.requests.get(request.requestId)?.bytes ?? 0);
    this.requests.set(request.requestId, request);
  }

  #notePause(event: DashboardEvent): void {
    const { type, atMs } = event;
    if (RETRY_KINDS.has(type)) {
      this.pauses.push({
        kind: 'backoff',
        what: event.path ?? event.target ?? '',
        why: event.error?.message ?? '',
        sinceMs: atMs,
        untilMs: atMs + (event.delayMs ?? 0),
        ...(event.attempt === undefined ? {} : { attempt: event.attempt }),
      });
    } else if (type === 'dispatch-paused') {
      const waiting = event.waiting ?? 0;
      this.pauses.push({
        kind: 'sampling',
        what: 'sampling',
        why: `the service asked to slow down (429)${waiting > 0 ? `; ${waiting} more wait for their turn` : ''}`,
        sinceMs: atMs,
        untilMs: atMs + (event.pauseMs ?? 0),
      });
    } else if (type === 'billing-paused') {
      this.#endBilling(atMs);
      const sinceMs = atMs - (event.pausedMs ?? 0);
      this.pauses.push({ kind: 'billing', what: 'everything', why: event.reason ?? '', sinceMs });
    } else if (type === 'request-sent' || type === 'request-finished') {
      this.#endBilling(atMs);
    }
  }

  /** Nobody says that a billing pause is over; that the service takes work again does. */
  #endBilling(atMs: number): void {
    this.pauses.replaceLast(
      (pause) => pause.kind === 'billing' && pause.untilMs === undefined,
      (pause) => ({ ...pause, untilMs: atMs }),
    );
  }

  #tick(atMs: number, more: Readonly<Record<string, number>>): void {
    const second = Math.floor(atMs / 1000);
    if (second > (this.clock.lastIndex ?? -Infinity)) this.clock.append({ index: second, values: {} });
    const at = this.clock.lastIndex!;
    this.clock.set(at, more, 'add');
    this.clock.set(at, { bytes: this.#bytes });
  }
}
