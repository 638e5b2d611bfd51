import { Changes } from '../queue/changes.js';

export interface Completion {
  readonly state: 'finished' | 'failed';
  readonly requestId: string;
  readonly sizeBytes?: number;
}

/** What finished in one (sampling session, clone), in order, for the session poller. The cursor counts completions. */
export class CompletionLog {
  readonly changes = new Changes();
  #entries: Completion[] = [];
  /** How many completions were trimmed. */
  #trimmed = 0;

  add(completion: Completion): void {
    this.#entries.push(completion);
    this.changes.notify();
  }

  get cursor(): number {
    return this.#trimmed + this.#entries.length;
  }

  /** What came after `cursor`; what came before it has been seen and is dropped. */
  after(cursor: number): readonly Completion[] {
    const seen = Math.max(0, Math.min(cursor - this.#trimmed, this.#entries.length));
    if (seen > 0) {
      this.#entries = this.#entries.slice(seen);
      this.#trimmed += seen;
    }
    return this.#entries;
  }
}
