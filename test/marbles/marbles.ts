import { configure } from 'rxjs-marbles';
import { expect } from 'vitest';

/** The one marble helper: virtual time on, and every comparison made by vitest. */
export const { marbles } = configure({
  run: true,
  frameworkMatcher: true,
  assertDeepEqual: (actual: unknown, expected: unknown) => expect(actual).toStrictEqual(expected),
});
