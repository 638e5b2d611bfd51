interface Turns {
  next: number;
  readonly ahead: Map<number, (() => void) | undefined>;
}

/** The order of each model's work: as at the service, work whose number is ahead waits until the gap is filled. */
export class FakeTurns {
  readonly #models = new Map<string, Turns>();

  /** The number that a model waits for. */
  next(modelId: string): number {
    return this.#models.get(modelId)?.next ?? 1;
  }

  /** Takes work with this number; `start` is called when every lower number has arrived. */
  arrive(modelId: string, seqId: number, start?: () => void): void {
    const turns = this.#models.get(modelId) ?? { next: 1, ahead: new Map<number, (() => void) | undefined>() };
    this.#models.set(modelId, turns);
    if (seqId < turns.next) return start?.();
    turns.ahead.set(seqId, start);
    while (turns.ahead.has(turns.next)) {
      const ready = turns.ahead.get(turns.next);
      turns.ahead.delete(turns.next++);
      ready?.();
    }
  }
}
