import type { TextScorerOptions } from './exact.js';
import { tidy, wanted } from './internal/wanted.js';
import type { ScoreArgs } from './scorer.js';

/** 1 where the expected text stands anywhere in the output, else 0. */
export function contains(options: TextScorerOptions = {}) {
  return function contains(args: ScoreArgs): number {
    return tidy(args.output, options).includes(tidy(wanted('contains', args), options)) ? 1 : 0;
  };
}
