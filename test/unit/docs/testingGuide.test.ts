/** The tests of docs/testing.md are run where the others are: the page shows what test/marbles/rxjsMarbles.test.ts holds. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
/** Code without its layout and the commas that a formatter adds. */
const bare = (code: string) => code.replace(/,(?=\s*[)\]}])/g, '').replace(/\s+/g, '');

it('docs/testing.md shows the tests with rxjs-marbles that are run', () => {
  const page = bare(read('docs/testing.md'));
  const tests = read('test/marbles/rxjsMarbles.test.ts').split(/^(?=it\()/m);
  expect(tests).toHaveLength(4);
  for (const test of tests.slice(1)) expect(page).toContain(bare(test));
});
