import type { SessionStatus, UserMetadata } from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { distinctTimes } from '../store/distinctTimes.js';
import type { JsonRecords } from '../store/jsonRecords.js';

/** A session as it is kept on disk. */
export interface SessionRecord {
  readonly version: 1;
  readonly sessionId: string;
  readonly createdAt: string;
  readonly tags: readonly string[];
  readonly userMetadata?: UserMetadata;
  readonly displayName?: string;
  readonly projectId: string;
  readonly sdkVersion: string;
  readonly status: SessionStatus;
}

export const isSessionRecord = (value: unknown): value is SessionRecord => {
  const record = value as Partial<SessionRecord> | null;
  return record?.version === 1 && typeof record.sessionId === 'string' && typeof record.status === 'object';
};

export interface SessionsOptions {
  readonly records: JsonRecords<SessionRecord>;
  readonly now: () => number;
  /** Measures silence: a machine that slept, or whose clock was set, has not heard nothing for that long. */
  readonly steadyNow: () => number;
  readonly newId: () => string;
  /** A session without heartbeat or other request for this long is over; 0 is never. */
  readonly ttlMs: number;
  /** Called once for each session that ends. */
  readonly onEnd: (sessionId: string) => void;
}

export type NewSession = Pick<SessionRecord, 'tags' | 'sdkVersion' | 'projectId'> &
  Partial<Pick<SessionRecord, 'userMetadata' | 'displayName'>>;

/** The sessions of this server: who is active, who has finished and how. */
export class Sessions {
  readonly #lastSeen = new Map<string, number>();
  readonly #times: () => number;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: SessionsOptions) {
    this.#times = distinctTimes(options.now);
    for (const { sessionId, status } of options.records.values()) {
      if (status.type === 'active') this.#lastSeen.set(sessionId, options.steadyNow());
    }
    if (options.ttlMs > 0) {
      this.#timer = setInterval(() => this.expire(), Math.max(10, Math.min(options.ttlMs / 4, 10_000)));
      this.#timer.unref();
    }
  }

  async create(session: NewSession): Promise<SessionRecord> {
    const record: SessionRecord = {
      version: 1,
      sessionId: this.options.newId(),
      createdAt: new Date(this.#times()).toISOString(),
      status: { type: 'active' },
      ...session,
    };
    this.#lastSeen.set(record.sessionId, this.options.steadyNow());
    try {
      await this.options.records.put(record.sessionId, record);
    } catch (error) {
      this.#lastSeen.delete(record.sessionId);
      throw error;
    }
    return record;
  }

  /** Newest first. */
  list(): SessionRecord[] {
    return this.options.records
      .values()
      .sort((a, b) => b.createdAt.localeCompare(a.createdAt) || b.sessionId.localeCompare(a.sessionId));
  }

  find(sessionId: string): SessionRecord | undefined {
    return this.options.records.get(sessionId);
  }

  /** @throws HttpError 404. */
  get(sessionId: string): SessionRecord {
    const record = this.options.records.get(sessionId);
    if (record === undefined) throw new HttpError(404, `there is no session ${sessionId.slice(0, 100)}`);
    return record;
  }

  /** The session, marked as alive. @throws HttpError 404 for an unknown one, 410 for one that is over. */
  use(sessionId: string): SessionRecord {
    this.expire();
    const record = this.get(sessionId);
    const { status } = record;
    if (status.type !== 'active') {
      const detail = 'detail' in status && typeof status.detail === 'string' ? `, ${status.detail}` : '';
      throw new HttpError(410, `session ${sessionId} is over: ${status.type}${detail}`);
    }
    this.#lastSeen.set(sessionId, this.options.steadyNow());
    return record;
  }

  /** Marks a session as alive, if it is. */
  touch(sessionId: string): void {
    if (this.#lastSeen.has(sessionId)) this.#lastSeen.set(sessionId, this.options.steadyNow());
  }

  /** Ends a session. The first reason wins: ending it again changes nothing. */
  async finish(sessionId: string, status: SessionStatus): Promise<void> {
    const record = this.get(sessionId);
    if (record.status.type !== 'active') return;
    const written = this.options.records.put(sessionId, { ...record, status });
    this.#lastSeen.delete(sessionId);
    this.options.onEnd(sessionId);
    await written;
  }

  async assignProject(sessionId: string, projectId: string): Promise<void> {
    await this.options.records.put(sessionId, { ...this.get(sessionId), projectId });
  }

  /** Ends every session that has been silent for too long. */
  expire(): void {
    if (this.options.ttlMs <= 0) return;
    const before = this.options.steadyNow() - this.options.ttlMs;
    for (const [sessionId, seen] of this.#lastSeen) {
      if (seen >= before) continue;
      const detail = `no heartbeat for ${this.options.ttlMs / 1000} s`;
      void this.finish(sessionId, { type: 'cancelled', detail }).catch(() => undefined);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
