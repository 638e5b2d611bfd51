import type { DashboardEvent, Failure, Load, Note, OpenRequest, Pause, Standing } from './changes.js';
import { Ring } from './Ring.js';
import { Series } from './Series.js';
import { rowsOf } from './rows.js';

const RETRY_KINDS = new Set(['request-retry', 'sample-resubmitted']);
const SECONDS_KEPT = 7200;
/** What comes so late is still of now: not all clocks tell the same. */
const LATE_SECONDS = 10;

/** The state that a client's events add up to: what is in flight, what is paused and why, what failed, and how fast it runs. */
export class EventState {
  /** Requests the service has not answered yet, by id. */
  readonly requests = new Map<string, OpenRequest>();
  /** The last 200 pauses. */
  readonly pauses = new Ring<Pause>(200);
  /** The last 500 failures. */
  readonly failures = new Ring<Failure>(500);
  /** The last 500 lines of the event log. */
  readonly notes = new Ring<Note>(500);
  /** How often each type of event came. */
  readonly counts: Record<string, number> = {};
  /**
   * By second: `requests` and `samples` that finished in it, `tokens` sampled; at its end, `bytes` of accepted requests
   * that are not answered, and those that are being sent as `sending`.
   */
  readonly clock = new Series(SECONDS_KEPT);
  /** What there is to do, if the client can be asked. */
  load: Load | undefined;
  #bytes = 0;

  /** Bytes of the requests that the service has accepted and not answered. */
  get bytesAccepted(): number {
    return this.#bytes;
  }

  /** Bytes that are on their way to the service and count against a budget; undefined if nobody can tell. */
  get bytesBeingSent(): number | undefined {
    const budgets = this.load?.budgets;
    return budgets === undefined ? undefined : budgets.sampleBytes.inUse + budgets.trainingBytes.inUse;
  }

  /** Takes in what there is to do now. */
  setLoad(load: Load): void {
    this.load = load;
    if (load.calls === 0) {
      // Requests without a waiting caller are not pending, whatever the events say.
      this.requests.clear();
      this.#bytes = 0;
      this.#endBilling(load.atMs);
    }
    this.#tick(load.atMs, {});
  }

  /** Applies one event. */
  apply(event: DashboardEvent): void {
    this.counts[event.type] = (this.counts[event.type] ?? 0) + 1;
    const open = this.requests.get(event.requestId ?? event.error?.requestId ?? '');
    this.#follow(event);
    this.#notePause(event);
    // What the caller gave up did not fail.
    if ((event.type === 'request-failed' && event.error?.code !== 'cancelled') || event.level === 'error') {
      this.failures.push({
        atMs: event.atMs,
        code: event.error?.code ?? event.type,
        message: event.error?.message ?? event.text ?? '',
        what: event.requestType ?? open?.requestType ?? event.path ?? '',
        ...(event.target === undefined ? {} : { target: event.target }),
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

  /** The whole state as data. */
  standing(): Standing {
    return {
      requests: [...this.requests.values()],
      pauses: this.pauses.toArray(),
      failures: this.failures.toArray(),
      notes: this.notes.toArray(),
      counts: { ...this.counts },
      clock: [...rowsOf(this.clock, SECONDS_KEPT)][0] ?? { index: [], columns: {} },
      ...(this.load === undefined ? {} : { load: this.load }),
    };
  }

  /** Replaces the state by one that `standing` returned. */
  restore({ requests, pauses, failures, notes, counts, clock, load }: Standing): void {
    this.load = load;
    for (const request of requests) this.#open(request);
    for (const pause of pauses) this.pauses.push(pause);
    for (const failure of failures) this.failures.push(failure);
    for (const note of notes) this.notes.push(note);
    Object.assign(this.counts, counts);
    this.clock.appendAll(clock.index, clock.columns);
  }

  #follow(event: DashboardEvent): void {
    const { type, atMs } = event;
    const requestId = event.requestId ?? event.error?.requestId;
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
      case 'request-abandoned':
      // The service has lost it: what is submitted in its place has another id.
      case 'sample-resubmitted': {
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
        what: event.path ?? 'asample',
        why: event.error?.message ?? '',
        ...workOf(event),
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
    } else if (type === 'request-sent' || (type === 'request-finished' && !this.#someUnsent)) {
      this.#endBilling(atMs);
    }
  }

  get #someUnsent(): boolean {
    return this.load !== undefined && this.load.unsent.length > 0;
  }

  /**
   * Nobody says that a billing pause is over; that the service takes work again does. That it finishes what it has does
   * only if nothing waits to be taken.
   */
  #endBilling(atMs: number): void {
    this.pauses.replaceLast(
      (pause) => pause.kind === 'billing' && pause.untilMs === undefined,
      (pause) => ({ ...pause, untilMs: atMs }),
    );
  }

  #tick(atMs: number, more: Readonly<Record<string, number>>): void {
    const second = Math.floor(atMs / 1000);
    if (second < (this.clock.lastIndex ?? -Infinity) - LATE_SECONDS) {
      // Of another time, as a log may tell it: it belongs there, if there is such a place.
      this.clock.set(second, more, 'add');
      return;
    }
    if (second > (this.clock.lastIndex ?? -Infinity)) this.clock.append({ index: second, values: {} });
    const at = this.clock.lastIndex!;
    this.clock.set(at, more, 'add');
    // A log has samples, but no requests.
    if (this.counts['request-sent'] !== undefined) this.clock.set(at, { bytes: this.#bytes });
    if (this.bytesBeingSent !== undefined) this.clock.set(at, { sending: this.bytesBeingSent });
  }
}

/** The work an event speaks of, as far as it does. */
function workOf({ type, requestType, requestId, target }: DashboardEvent): Partial<Pause> {
  const kind = type === 'sample-resubmitted' ? 'Sample' : requestType;
  return {
    ...(kind === undefined ? {} : { requestType: kind }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(target === undefined ? {} : { target }),
  };
}
