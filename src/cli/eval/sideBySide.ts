import type { EvalPair, EvalRecord } from '../../evals/index.js';
import { oneLine, padEnd, safeText, wrap } from '../../support/terminal/textWidth.js';
import type { Style } from '../terminal/style.js';

const MOST_LINES = 12;
const GAP = ' │ ';

/** One example with what was said before and after beside each other, as lines of text. */
export function sideBySide({ id, before, after }: EvalPair, width: number, { bold, dim }: Style): string {
  const half = Math.max(20, Math.floor((Math.min(width, 160) - GAP.length) / 2));
  const { input, expected } = after;
  const columns = [before, after].map((record, place) => [
    `${place === 0 ? 'before' : 'after'}: ${meanOf(record).toFixed(2)}`,
    ...textLines(worstOutput(record), half),
  ]);
  const height = Math.max(...columns.map(({ length }) => length));
  const rows = Array.from({ length: height }, (_, line) =>
    columns
      .map((column) => padEnd(column[line] ?? '', half))
      .join(GAP)
      .trimEnd(),
  );
  return [
    '',
    bold(`── ${oneLine(id)}`),
    ...(input === ''
      ? []
      : textLines(input, 2 * half)
          .slice(0, 4)
          .map(dim)),
    ...(expected === undefined ? [] : [dim(`expected: ${oneLine(expected)}`)]),
    ...rows,
    '',
  ].join('\n');
}

const meanOf = ({ samples }: EvalRecord): number => samples.reduce((sum, { score }) => sum + score, 0) / samples.length;

/** Of several samples the one that scored least. */
const worstOutput = ({ samples }: EvalRecord): string =>
  samples.reduce((least, each) => (each.score < least.score ? each : least)).output;

function textLines(text: string, width: number): string[] {
  const lines = safeText(text)
    .split('\n')
    .flatMap((line) => wrap(line, width));
  return lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES - 1), '…'];
}
