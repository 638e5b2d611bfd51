import { expect, it } from 'vitest';
import { MessageMemory } from '../../../src/wire/proto/MessageMemory.js';

const MEBIBYTE = 2 ** 20;

it('uses memory again once it was given back', () => {
  const memory = new MessageMemory();
  const first = memory.take(3 * MEBIBYTE - 5);
  const second = memory.take(3 * MEBIBYTE);
  expect(second.buffer).not.toBe(first.buffer);
  memory.give(first);
  const third = memory.take(2 * MEBIBYTE);
  expect(third.buffer).toBe(first.buffer);
  expect([first.length, third.length, third.byteOffset]).toStrictEqual([3 * MEBIBYTE - 5, 2 * MEBIBYTE, 0]);
  expect(memory.take(2 * MEBIBYTE).buffer).not.toBe(first.buffer);
});

it('has no use for memory that is too small, or more than twice what is asked for', () => {
  const memory = new MessageMemory();
  const first = memory.take(4 * MEBIBYTE);
  memory.give(first);
  expect(memory.take(5 * MEBIBYTE).buffer).not.toBe(first.buffer);
  expect(memory.take(1.5 * MEBIBYTE).buffer).not.toBe(first.buffer);
  expect(memory.take(2 * MEBIBYTE).buffer).toBe(first.buffer);
});

it('keeps nothing small, and not without bound', () => {
  const memory = new MessageMemory();
  const small = memory.take(100);
  memory.give(small);
  expect(memory.take(100).buffer).not.toBe(small.buffer);
  const many = Array.from({ length: 20 }, () => memory.take(MEBIBYTE));
  for (const each of many) memory.give(each);
  const again = Array.from({ length: 20 }, () => memory.take(MEBIBYTE).buffer);
  expect(again.filter((buffer) => many.some((each) => each.buffer === buffer))).toHaveLength(16);
});
