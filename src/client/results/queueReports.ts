import { isLeft } from 'fp-ts/lib/Either.js';
import { QueueReport, toQueueState } from '../../wire/futures.js';
import type { Connection } from '../connection/Connection.js';
import type { WorkKind } from '../events.js';

const SAME_EVERY_MS = 60_000;

/** Emits what the service says about its queue while work waits: when it changes, and once a minute. */
export class QueueReports {
  #last = '';
  #lastMs = -Infinity;

  constructor(readonly connection: Pick<Connection, 'scheduler' | 'events' | 'secrets'>) {}

  /** Reads a "not yet" answer. One that says nothing about the queue emits nothing. */
  read(body: unknown, { requestType, target }: WorkKind, requestId: string, sinceMs: number): void {
    const report = QueueReport.decode(body);
    if (isLeft(report)) return;
    const { queueState, queueStateReason } = report.right;
    if (queueState === undefined && queueStateReason === undefined) return;
    const reason = queueStateReason === undefined ? undefined : this.connection.secrets.clean(queueStateReason);
    const state = toQueueState(queueState);
    const nowMs = this.connection.scheduler.now();
    const text = `${requestId} ${state} ${reason ?? ''}`;
    if (text === this.#last && nowMs - this.#lastMs < SAME_EVERY_MS) return;
    this.#last = text;
    this.#lastMs = nowMs;
    const waitedMs = nowMs - sinceMs;
    this.connection.events.emit({ type: 'queue-state', requestId, requestType, target, state, reason, waitedMs });
  }
}
