import { basename } from 'node:path';
import type { SourceEvent } from '../../../sources/index.js';
import { count } from '../../output/format.js';

/** How many fields that nothing reads are named; the others are counted. */
const NAMED = 8;

/** What became of the rows of a file, for a line or two to the user. */
export class RowReport {
  /** By line: every epoch tells the same. */
  readonly #skipped = new Set<number>();
  readonly #untrained = new Set<number>();
  readonly #unused = new Map<string, number>();

  constructor(readonly file: string) {}

  take(event: SourceEvent): void {
    if (event.type === 'row-skipped') this.#skipped.add(event.line);
    if (event.type === 'row-untrained') this.#untrained.add(event.line);
    if (event.type === 'field-unused') this.#unused.set(event.field, event.rows);
  }

  /** `, 2 bad rows skipped, …`; nothing if all rows are trained on. */
  get losses(): string {
    const [skipped, untrained] = [this.#skipped.size, this.#untrained.size];
    return [
      ...(skipped === 0 ? [] : [`, ${count(skipped, 'bad row')} skipped`]),
      ...(untrained === 0 ? [] : [`, ${count(untrained, 'row')} with nothing to train left out`]),
    ].join('');
  }

  /** The fields that nothing reads, in a sentence; undefined if there are none. */
  get unused(): string | undefined {
    const fields = [...this.#unused].sort(([, one], [, other]) => other - one);
    if (fields.length === 0) return undefined;
    const named = fields.slice(0, NAMED).map(([field, rows]) => `${field} (${count(rows, 'row')})`);
    const rest = fields.length > NAMED ? ` and ${count(fields.length - NAMED, 'other')}` : '';
    return `${basename(this.file)}: fields that are not used: ${named.join(', ')}${rest}`;
  }
}
