import type { EvalRecord } from '../../evals/index.js';
import { rate } from '../../support/terminal/progressLine.js';
import { count } from '../output/format.js';
import type { Status } from '../terminal/statusLine.js';

/** Counts examples as they finish, for a line of progress. */
export class EvalTally {
  readonly #startedMs: number;
  #done = 0;
  #failed = 0;
  #tokens = 0;
  #score = 0;
  #scored = 0;

  constructor(
    private readonly now: () => number,
    private readonly total: number,
  ) {
    this.#startedMs = now();
  }

  take({ samples, failures }: EvalRecord): void {
    this.#done++;
    this.#failed += failures.length;
    for (const { score, sampledTokens } of samples) {
      this.#score += score;
      this.#scored++;
      this.#tokens += sampledTokens;
    }
  }

  /** How far it is, and what it has cost. */
  status(cost: string | undefined): Status {
    const seconds = Math.max(1, this.now() - this.#startedMs) / 1000;
    return {
      label: 'evaluating',
      fraction: this.total === 0 ? undefined : this.#done / this.total,
      facts: [
        { text: `${this.#done}/${count(this.total, 'example')}` },
        ...(this.#scored === 0 ? [] : [{ text: `score ${(this.#score / this.#scored).toFixed(3)}`, keep: 4 }]),
        ...(this.#failed === 0 ? [] : [{ text: `${this.#failed} failed` }]),
        ...(this.#tokens === 0 ? [] : [{ text: `${rate(this.#tokens / seconds)} tokens/s`, keep: 1 }]),
        ...(cost === undefined ? [] : [{ text: cost, keep: 3 }]),
        { text: `${Math.floor(seconds)} s`, keep: 4.5 },
      ],
    };
  }
}
