import type { Calibration, EvalSummary, Interval } from '../../evals/index.js';
import type { Context } from '../context.js';
import { costText } from '../run/Spending.js';
import type { SpendingTold } from './evalSpending.js';
import { count } from '../output/format.js';
import { printProperties } from '../output/print.js';

const LEVEL = '95 %';

/** A mean with its interval: `0.667 (0.208 to 0.939)`. */
export const told = ({ mean, low, high }: Interval): string =>
  Number.isFinite(low) && Number.isFinite(high)
    ? `${mean.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`
    : mean.toFixed(3);

/** Says what an evaluation came to. */
export function printSummary(context: Context, summary: EvalSummary & SpendingTold, file: string): void {
  const { examples, samples, unscored, failures, scores, passAtK, cutOff, corpus, decisions, cost } = summary;
  const failed = failures.rollout + failures.scorer;
  printProperties(
    context,
    [
      ['Examples', `${examples.toLocaleString('en-US')}${unscored === 0 ? '' : `, ${unscored} without a score`}`],
      ['Samples', samples.toLocaleString('en-US')],
      ...(failed === 0
        ? []
        : [['Failed', `${count(failures.rollout, 'answer')}, ${count(failures.scorer, 'score')}`] as const]),
      ...Object.entries(scores).map(([name, interval]) => [name, `${told(interval)}, ${LEVEL}`] as const),
      ...(decisions === undefined ? [] : calibrationRows(decisions)),
      ...(corpus === undefined && decisions === undefined
        ? Object.entries(passAtK).map(([k, interval]) => [`pass@${k}`, `${told(interval)}, ${LEVEL}`] as const)
        : corpus === undefined
          ? []
          : ([
              ['NLL per token', corpus.nll.toFixed(4)],
              ['Perplexity', corpus.perplexity.toFixed(3)],
              ['Bits per byte', corpus.bitsPerByte.toFixed(4)],
              ...(Number.isNaN(corpus.accuracy) ? [] : [['Accuracy', corpus.accuracy.toFixed(4)] as const]),
            ] as const)),
      ...(cutOff === 0 ? [] : [['Cut off', `${(100 * cutOff).toFixed(1)} % at the token limit`] as const]),
      [
        'Tokens',
        `${summary.promptTokens.toLocaleString('en-US')} of prompts, ${summary.sampledTokens.toLocaleString('en-US')} sampled`,
      ],
      ...(cost === undefined || cost.tokens === 0 ? [] : [['Cost', costText(cost)] as const]),
      ['Results', file],
    ],
    () => ({ ...summary, results: file }),
  );
}

/** The calibration error, and a row for each threshold that decisions still reach. */
function calibrationRows({ calibrationError, thresholds }: Calibration): readonly (readonly [string, string])[] {
  return [
    ['Calibration error', calibrationError.toFixed(4)],
    ...thresholds
      .filter(({ count: taken }) => taken > 0)
      .map(
        ({ threshold, accuracy, coverage, count: taken }) =>
          [
            `confidence ≥ ${threshold}`,
            `${accuracy.toFixed(3)} right, ${(100 * coverage).toFixed(0)} % of rows (${taken.toLocaleString('en-US')})`,
          ] as const,
      ),
  ];
}
