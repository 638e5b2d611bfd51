import type { ModelState } from '../engine/types.js';
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

  /** `clients` is the number of clients that may have joined before. */
  constructor(
    readonly id: string,
    readonly sessionId: string | undefined,
    readonly source: SamplerSource,
    /** Of the request that made it. */
    readonly digest: string,
    private clients = 0,
  ) {}

  /** A number for one more client of this sampler; the first is 1. */
  join(): number {
    return ++this.clients;
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

/** A sampler of a base model or of a checkpoint as it is kept on disk, so that it is there when the service starts again. */
export interface SamplerRecord {
  readonly version: 1;
  readonly id: string;
  readonly sessionId: string;
  readonly baseModel?: string | undefined;
  readonly modelPath?: string | undefined;
  readonly digest: string;
}

export const isSamplerRecord = (value: unknown): value is SamplerRecord => {
  const record = value as Partial<SamplerRecord> | null;
  return record?.version === 1 && typeof record.id === 'string' && typeof record.sessionId === 'string';
};
