import type { ModelState } from '../engine/types.js';
import { HttpError } from '../http/httpError.js';
import { RecentRequests } from '../queue/recentRequests.js';
import { CompletionLog } from './completionLog.js';

/** Where a sampler's weights come from. `key` names the weights: the same key, the same weights. */
export interface SamplerSource {
  readonly key: string;
  readonly baseModel: string;
  readonly modelPath?: string;
  /** Absent for the base model itself. */
  readonly load?: () => Promise<ModelState>;
}

const CLONE_BLOCK = 1_000_000_000n;

/** One sampler as clients see it: weights that never change, and the requests made to it. */
export class SamplingSession {
  readonly recent = new RecentRequests();
  readonly #logs = new Map<number, CompletionLog>();
  #clients = 0;

  constructor(
    readonly id: string,
    readonly sessionId: string | undefined,
    readonly source: SamplerSource,
    /** Of the request that made it. */
    readonly digest: string,
  ) {}

  /** The number of a further client of this sampler; the first is 1. */
  join(): number {
    return ++this.#clients;
  }

  logOf(clone: number): CompletionLog {
    let log = this.#logs.get(clone);
    if (log === undefined) this.#logs.set(clone, (log = new CompletionLog()));
    return log;
  }

  logOfSeqId(seqId = 0n): CompletionLog {
    return this.logOf(Number(seqId / CLONE_BLOCK));
  }
}

export class SamplingSessions {
  readonly #sessions = new Map<string, SamplingSession>();

  /** @throws HttpError 404. */
  get(id: string): SamplingSession {
    const session = this.#sessions.get(id);
    if (session === undefined) throw new HttpError(404, `there is no sampling session ${id.slice(0, 150)}`);
    return session;
  }

  find(id: string): SamplingSession | undefined {
    return this.#sessions.get(id);
  }

  add(session: SamplingSession): void {
    this.#sessions.set(session.id, session);
  }

  ofSession(sessionId: string): SamplingSession[] {
    return [...this.#sessions.values()].filter((session) => session.sessionId === sessionId);
  }

  remove(id: string): void {
    this.#sessions.delete(id);
  }
}
