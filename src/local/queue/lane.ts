import { HttpError } from '../http/httpError.js';
import type { FutureResult, LocalFuture } from './localFuture.js';
import { RecentRequests } from './recentRequests.js';

/** One accepted piece of work, and the promise given for it. */
export interface Operation {
  readonly future: LocalFuture;
  /** An optimizer step: a model makes one a cycle. */
  readonly isStep?: boolean;
  readonly run: (cycle: number) => Promise<FutureResult | Later>;
}

/** The model's part is done and its next operation may run; the result comes later, as when a file is being written. */
export interface Later {
  readonly type: 'later';
  readonly result: Promise<FutureResult>;
}

/**
 * The work of one model, in order. Requests may arrive out of order: one whose seq_id is ahead waits until the gap is
 * filled. Work without a seq_id runs by arrival.
 */
export class Lane {
  #nextSeqId = 1;
  #ready: Operation[] = [];
  readonly #ahead = new Map<number, Operation>();
  readonly #recent = new RecentRequests();
  running = false;

  constructor(
    readonly modelId: string,
    private readonly wake: (lane: Lane) => void,
    /** `arrival` ignores seq_ids altogether, as some servers do. */
    private readonly order: 'seq_id' | 'arrival',
  ) {}

  /**
   * Takes a request in its turn. The same request again gets the same future.
   *
   * @throws HttpError 409 when the seq_id was already used for other content, 422 when it is not an integer ≥ 1.
   */
  submit(seqId: number | undefined, digest: string, accept: () => Operation): LocalFuture {
    if (seqId === undefined || this.order === 'arrival') return this.#push(accept());
    if (!Number.isSafeInteger(seqId) || seqId < 1) throw new HttpError(422, `seq_id must be an integer ≥ 1`);
    const known = this.#recent.find(seqId, digest);
    if (known !== undefined) return known;
    if (seqId < this.#nextSeqId) throw new HttpError(409, `seq_id ${seqId} was used long ago`);
    const operation = accept();
    this.#recent.add(seqId, digest, operation.future);
    if (seqId > this.#nextSeqId) {
      this.#ahead.set(seqId, operation);
      this.#explainGap();
      return operation.future;
    }
    this.#push(operation);
    this.#nextSeqId++;
    for (let next = this.#ahead.get(this.#nextSeqId); next !== undefined; next = this.#ahead.get(this.#nextSeqId)) {
      this.#ahead.delete(this.#nextSeqId++);
      this.#push(next);
    }
    this.#explainGap();
    return operation.future;
  }

  get idle(): boolean {
    return !this.running && this.#ready.length === 0 && this.#ahead.size === 0;
  }

  get hasReady(): boolean {
    return this.#ready.length > 0;
  }

  /** What runs in one cycle, in order: everything that is ready, up to a second optimizer step. */
  takeCycle(): readonly Operation[] {
    const steps = this.#ready.flatMap(({ isStep }, place) => (isStep === true ? [place] : []));
    return this.#ready.splice(0, steps[1] ?? this.#ready.length);
  }

  /** Runs `last` after all that is in order; what waits for a gap can never run and fails. */
  retire(last: Operation): void {
    const stranded = [...this.#ahead.values()];
    this.#ahead.clear();
    for (const { future } of stranded) {
      future.reject({ error: `the session ended: ${future.waitingFor ?? 'out of order'}`, category: 'user' });
    }
    this.#push(last);
  }

  #push(operation: Operation): LocalFuture {
    operation.future.waitingFor = undefined;
    this.#ready.push(operation);
    this.wake(this);
    return operation.future;
  }

  #explainGap(): void {
    for (const { future } of this.#ahead.values()) future.waitingFor = `waiting for seq_id ${this.#nextSeqId}`;
  }
}
