import { checkAtLeast } from '../../support/checks.js';
import { wanted } from './internal/wanted.js';
import type { ScoreArgs } from './scorer.js';

/** Options of `numeric`. */
export interface NumericOptions {
  /** How far off a number may be, relative to the expected one: ≥ 0. Default 1e-6. */
  readonly tolerance?: number;
}

/** A sign counts only where it cannot be a minus between two numbers, or a hyphen. Commas group thousands. */
const NUMBER = /(?:(?<![\w)])[-+−])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?/g;

/** 1 if the last number of the output is the last number that is expected, else 0. `1,024.50` and `−3` are numbers. */
export function numeric({ tolerance = 1e-6 }: NumericOptions = {}) {
  checkAtLeast({ tolerance }, 0);
  return function numeric(args: ScoreArgs): number {
    const text = wanted('numeric', args);
    const right = lastNumber(text);
    if (right === undefined) throw new Error(`numeric needs a number as the expected answer, got ${text}`);
    const said = lastNumber(args.output);
    return said !== undefined && Math.abs(said - right) <= tolerance * Math.max(1, Math.abs(right)) ? 1 : 0;
  };
}

function lastNumber(text: string): number | undefined {
  const last = text.match(NUMBER)?.at(-1);
  return last === undefined ? undefined : Number(last.replaceAll(',', '').replace('−', '-'));
}
