import { defer, map, type Observable, retry } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import { cancelling } from '../../support/cancelling.js';
import { seedFrom } from '../../support/random.js';
import { splitShared } from './splitShared.js';
import type { JudgeOptions } from './judge.js';
import type { Compare } from './pairwise.js';

/**
 * A judge that says which of two tries at a task is better, for {@link pairwise}.
 *
 * It is shown the task and both tries, and asked to end with A, B or tie. A judgement that still cannot be read after its retries fails
 * the group.
 */
export function comparison<T>(options: JudgeOptions<T>): Compare<T> {
  const { sampler, renderer, criteria, samplingParams = { maxTokens: 1024 }, retries = 2 } = options;
  const { decode = (tokens: Int32Array) => renderer.tokenizer.decode(tokens) } = options;
  const wanted = (task: T) => (typeof criteria === 'string' ? criteria : criteria(task));
  const { question = (tries, shared, task) => bothTries(wanted(task), shared, tries) } = options;
  checkIntegers({ retries }, 0);
  return (first, second, task, { seed }): Observable<number> => {
    const { shared, parts } = splitShared([first, second]);
    const content = question(parts.map(decode), decode(shared), task);
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content }]);
    let attempt = 0;
    return defer(() => {
      const params = { seed: seedFrom(seed, attempt++), stop: renderer.getStopSequences(), ...samplingParams };
      return cancelling(sampler.sample({ prompt, samplingParams: params }));
    }).pipe(
      map(({ sequences }) => verdict(renderer.parse(sequences[0]!.tokens).text)),
      retry({ count: retries }),
    );
  };
}

const bothTries = (criteria: string, shared: string, [a, b]: readonly string[]): string =>
  `Below are two tries at the same task. Compare them by this: ${criteria}\n\n` +
  `<task>\n${shared}\n</task>\n\n<A>\n${a}\n</A>\n\n<B>\n${b}\n</B>\n\n` +
  'Which one is better? End with one line: A, B or tie.';

const SCORES: Readonly<Record<string, number>> = { a: 1, b: 0, tie: 0.5 };

/** The last word of the text. @throws Error where it is no verdict. */
function verdict(text: string): number {
  const word = /(\w+)\W*$/.exec(text)?.[1]?.toLowerCase() ?? '';
  const score = SCORES[word];
  if (score === undefined) throw new Error('the judge did not end with A, B or tie');
  return score;
}
