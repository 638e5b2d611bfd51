import { rate } from '../../support/terminal/progressLine.js';
import type { SampleResponse } from '../../wire/sampling.js';
import { count } from '../output/format.js';
import type { Status } from '../terminal/statusLine.js';

/** Counts prompts and what came back for them, for a line of progress. */
export class SampleTally {
  readonly #startedMs: number;
  #tokens = 0;
  finished = 0;
  failed = 0;
  /** Of those that failed, the rows that are no prompts: asking again does not help. */
  bad = 0;
  /** Of those that failed, the rows that were skipped as bad ones. */
  skipped = 0;
  asked = 0;
  /** Whether the last prompt has been read: from then on there is a total. */
  allAsked = false;

  constructor(private readonly now: () => number) {
    this.#startedMs = now();
  }

  finish({ sequences }: SampleResponse): void {
    this.finished++;
    this.#tokens += sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  }

  /** How far it is. `share` is the share of the file that was asked so far, where there is one. */
  status(share?: number): Status {
    const done = this.finished + this.failed;
    const seconds = Math.max(1, this.now() - this.#startedMs) / 1000;
    const text = this.allAsked ? `${done}/${count(this.asked, 'prompt')}` : `${count(done, 'prompt')} done`;
    const pending = this.asked - done;
    const known = this.allAsked ? 1 : share;
    const fraction = known === undefined || this.asked === 0 ? undefined : (known * done) / this.asked;
    return {
      label: 'sampling',
      ...(fraction === undefined || (this.allAsked && this.asked < 2) ? {} : { fraction }),
      facts: [
        { text },
        ...(this.allAsked ? [] : [{ text: `${pending} in flight`, keep: 2.5 }]),
        ...(this.failed === 0 ? [] : [{ text: `${this.failed} failed` }]),
        ...(this.#tokens === 0 ? [] : [{ text: `${rate(this.#tokens / seconds)} tokens/s`, keep: 1 }]),
        { text: `${Math.floor(seconds)} s`, keep: 4.5 },
      ],
    };
  }
}
