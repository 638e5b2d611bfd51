import { asking, type JudgeOptions } from './judge.js';
import type { Compare } from './pairwise.js';

/**
 * A judge that says which of two tries at a task is better, for {@link pairwise}.
 *
 * It is shown the task and both tries, and asked to end with A, B or tie. A judgement that still cannot be read after its retries fails
 * the group.
 */
export function comparison<T>(options: JudgeOptions<T>): Compare<T> {
  const ask = asking(options, bothTries, verdict);
  return (first, second, task, { seed }) => ask([first, second], task, seed);
}

const bothTries = (criteria: string, shared: string, [a, b]: readonly string[]): string =>
  `Below are two tries at the same task. Compare them by this: ${criteria}\n\n` +
  `<task>\n${shared}\n</task>\n\n<A>\n${a}\n</A>\n\n<B>\n${b}\n</B>\n\n` +
  'Which one is better? End with one line: A, B or tie.';

const SCORES: Readonly<Record<string, number>> = { a: 1, b: 0, tie: 0.5 };

/** The last word of the text. @throws Error if it is no verdict. */
function verdict(text: string): number {
  const word = /(\w+)\W*$/.exec(text)?.[1]?.toLowerCase() ?? '';
  const score = SCORES[word];
  if (score === undefined) throw new Error('the judge did not end with A, B or tie');
  return score;
}
