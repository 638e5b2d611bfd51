import { fitLine, percent, type Fact } from '../../support/terminal/progressLine.js';
import { plainText } from '../../support/plainText.js';
import type { Context } from '../context.js';

/** How far something is: a label, a share from 0 to 1 where it is known, and what else there is to tell. */
export interface Status {
  readonly label: string;
  readonly fraction?: number | undefined;
  readonly facts?: readonly Fact[];
}

/** How often a line is written where there is no terminal to redraw one on. */
const LINE_EVERY_MS = 10_000;
const REDRAW_MS = 100;

/** One line of a terminal, redrawn in place. Without a terminal, a line of text now and then, so that a log shows progress. */
export class StatusLine {
  #toldMs: number;
  #drawn = '';

  constructor(private readonly context: Pick<Context, 'stderr' | 'now'>) {
    this.#toldMs = context.stderr.isTTY === true ? -Infinity : context.now();
  }

  /** Shows a status, unless another was shown only just before. */
  show(status: Status): void {
    const { stderr, now } = this.context;
    if (now() - this.#toldMs < (stderr.isTTY === true ? REDRAW_MS : LINE_EVERY_MS)) return;
    this.#toldMs = now();
    this.#draw(status);
  }

  /** Shows a last status and leaves it there. Does nothing without a terminal. */
  end(status: Status): void {
    const { stderr } = this.context;
    if (stderr.isTTY !== true) return;
    this.#draw(status);
    stderr.write('\n');
    this.#drawn = '';
  }

  /** Takes the line away. */
  clear(): void {
    if (this.#drawn !== '' && this.context.stderr.isTTY === true) this.context.stderr.write('\r\u001b[K');
    this.#drawn = '';
  }

  #draw({ label: given, fraction, facts = [] }: Status): void {
    const { stderr } = this.context;
    const label = plainText(given);
    const told = [...(fraction === undefined ? [] : [percent(fraction)]), ...facts];
    if (stderr.isTTY !== true) {
      const texts = told.map(({ text }) => text).join(', ');
      stderr.write(`${label}${texts === '' ? '' : `: ${texts}`}\n`);
      return;
    }
    const line = fitLine(label, fraction, told, (stderr.columns ?? 80) - 1);
    this.#drawn = line;
    stderr.write(`\r${line}\u001b[K`);
  }
}
