import type { ScoreArgs } from '../scorer.js';

export interface TidyOptions {
  /** Whether capitals matter. Default true. */
  readonly caseSensitive?: boolean;
}

export function tidy(text: string, { caseSensitive = true }: TidyOptions): string {
  const trimmed = text.trim();
  return caseSensitive ? trimmed : trimmed.toLowerCase();
}

/** What the task expects. @throws Error if it does not tell */
export function wanted(scorer: string, { expected }: ScoreArgs): string {
  if (expected !== undefined) return expected;
  throw new Error(
    `${scorer} needs an expected answer: give tasks the field expected or answer, or the option expected`,
  );
}
