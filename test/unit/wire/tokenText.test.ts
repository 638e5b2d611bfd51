import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tokenText } from '../../../src/wire/tokenText.js';

test('every token id is written as join writes it', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(), fc.nat(100_000))), (ids) => {
      expect(tokenText(Int32Array.from(ids))).toBe(ids.join(','));
    }),
  );
});

test('so are the edges of every length, and none', () => {
  const edges = Array.from({ length: 10 }, (_, power) => [10 ** power - 1, 10 ** power]).flat();
  const ids = [...edges, 2 ** 31 - 1];
  expect(tokenText(Int32Array.from(ids))).toBe(ids.join(','));
  expect(tokenText(new Int32Array())).toBe('');
});

test('a prompt longer than the kept memory is written too', () => {
  const ids = Int32Array.from({ length: 20_000 }, (_, index) => 2 ** 31 - 1 - index);
  expect(tokenText(ids)).toBe(ids.join(','));
});
