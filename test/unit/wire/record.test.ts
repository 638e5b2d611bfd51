import { isLeft, isRight } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { describe, expect, it } from 'vitest';
import { describeErrors, optional, prepareWith, request, response, withDefault } from '../../../src/wire/record.js';
import { expectDecoded, expectRefused } from './decoding.js';

const Part = request('Part', { part_name: t.string });
const fields = {
  model_id: t.string,
  max_tokens: withDefault(t.number, 16),
  top_k_2: optional(t.number),
  parts: optional(t.array(Part)),
};
const Strict = request('Strict', fields);
const Lenient = response('Lenient', fields);

describe('a record', () => {
  describe('is', () => {
    it('takes camelCase with every default filled in', () => {
      expect(Strict.is({ modelId: 'm', maxTokens: 1 })).toBe(true);
      expect(Strict.is({ modelId: 'm', maxTokens: 1, topK2: 3, parts: [{ partName: 'a' }] })).toBe(true);
      expect(Strict.is({ modelId: 'm' })).toBe(false);
      expect(Strict.is({ model_id: 'm', maxTokens: 1 })).toBe(false);
      expect(Strict.is({ modelId: 'm', maxTokens: 1, parts: [{}] })).toBe(false);
      for (const value of [null, undefined, 1, 'm', []]) expect(Strict.is(value)).toBe(false);
    });
  });

  describe('decode', () => {
    it('gives camelCase and fills in defaults', () => {
      expectDecoded(Strict, { model_id: 'm' }, { modelId: 'm', maxTokens: 16 });
      expectDecoded(
        Strict,
        { model_id: 'm', max_tokens: 2, top_k_2: 5, parts: [{ part_name: 'a' }] },
        { modelId: 'm', maxTokens: 2, topK2: 5, parts: [{ partName: 'a' }] },
      );
    });

    it('takes null for absent', () => {
      expectDecoded(Lenient, { model_id: 'm', max_tokens: null, top_k_2: null }, { modelId: 'm', maxTokens: 16 });
      expectRefused(Lenient, { model_id: null }, 'model_id: expected string');
    });

    it('drops unknown keys of a response and refuses those of a request', () => {
      expectDecoded(Lenient, { model_id: 'm', color: 'red' }, { modelId: 'm', maxTokens: 16 });
      expectRefused(Strict, { model_id: 'm', color: 'red' }, 'color: unknown key');
    });

    it('names the place and what was expected, never the value', () => {
      expectRefused(Strict, {}, 'model_id: expected string');
      expectRefused(Strict, 'secret', 'expected Strict');
      expectRefused(Strict, [], 'expected Strict');
      expectRefused(
        Strict,
        { model_id: 7, max_tokens: 'secret' },
        'model_id: expected string; max_tokens: expected number',
      );
      expectRefused(
        Strict,
        { model_id: 'm', parts: [{ part_name: 'a' }, { part_name: 1 }] },
        'parts.1.part_name: expected string',
      );
    });

    it('says five mistakes and counts the rest', () => {
      const Wide = request('Wide', Object.fromEntries('abcdefgh'.split('').map((name) => [name, t.string])));
      expectRefused(
        Wide,
        {},
        'a: expected string; b: expected string; c: expected string; d: expected string; e: expected string; and 3 more',
      );
    });
  });

  describe('encode', () => {
    it('gives snake_case, writes defaults and leaves out what is not set', () => {
      expect(Strict.encode({ modelId: 'm', maxTokens: 16 })).toStrictEqual({ model_id: 'm', max_tokens: 16 });
      expect(Strict.encode({ modelId: 'm', maxTokens: 3, topK2: 1, parts: [{ partName: 'a' }] })).toStrictEqual({
        model_id: 'm',
        max_tokens: 3,
        top_k_2: 1,
        parts: [{ part_name: 'a' }],
      });
    });

    it('is undone by decode', () => {
      const value = { modelId: 'm', maxTokens: 3, topK2: 0, parts: [] };
      expectDecoded(Strict, Strict.encode(value), value);
    });
  });

  describe('prepare', () => {
    const refusal = (input: unknown): string => {
      const prepared = Strict.prepare(input as never);
      return isLeft(prepared) ? describeErrors(prepared.left) : expect.fail('it was prepared');
    };

    it('takes what a caller writes and gives the wire form', () => {
      const prepared = Strict.prepare({ modelId: 'm', parts: [{ partName: 'a' }] });
      expect(isRight(prepared) && prepared.right).toStrictEqual({
        model_id: 'm',
        max_tokens: 16,
        parts: [{ part_name: 'a' }],
      });
    });

    it('says every mistake in the caller’s own names', () => {
      expect(refusal({})).toBe('Strict.modelId: expected string');
      expect(refusal({ model_id: 'm' })).toBe('Strict.model_id: unknown key; Strict.modelId: expected string');
      expect(refusal({ modelId: 'm', maxTokens: 'many' })).toBe('Strict.maxTokens: expected number');
      expect(refusal({ modelId: 'm', parts: [{ part: 1 }] })).toBe(
        'Strict.parts.0.part: unknown key; Strict.parts.0.partName: expected string',
      );
      expect(refusal({ modelId: 'm', parts: {} })).toBe(`Strict.parts: expected Array<Part>`);
      expect(refusal(null)).toBe('Strict: expected Strict');
    });

    it('tries each member of a union', () => {
      const Either = t.union([Part, t.string], 'Either');
      const context = t.getDefaultContext(Either);
      expect(prepareWith(Either, { partName: 'a' }, context)).toMatchObject({ right: { part_name: 'a' } });
      expect(prepareWith(Either, 'text', context)).toMatchObject({ right: 'text' });
      expect(isLeft(prepareWith(Either, 7, context))).toBe(true);
    });
  });
});
