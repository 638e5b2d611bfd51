import { tidy, type TidyOptions, wanted } from './internal/wanted.js';
import type { ScoreArgs } from './scorer.js';

/** Options of {@link exact} and {@link contains}. */
export type TextScorerOptions = TidyOptions;

/** 1 if the output is the expected text, else 0. Space at both ends does not count. */
export function exact(options: TextScorerOptions = {}) {
  return function exact(args: ScoreArgs): number {
    return tidy(args.output, options) === tidy(wanted('exact', args), options) ? 1 : 0;
  };
}
