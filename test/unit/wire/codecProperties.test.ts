import fc from 'fast-check';
import { isRight } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { expect, it } from 'vitest';
import * as wire from '../../../src/wire/index.js';

const codecs = Object.entries(wire).filter((entry): entry is [string, t.Mixed] => entry[1] instanceof t.Type);

it('every codec makes an Either of any JSON and of any other value, and never throws', () => {
  expect(codecs.length).toBeGreaterThan(40);
  const names = fc.constantFrom(
    'type',
    '__proto__',
    'constructor',
    'data',
    'dtype',
    'shape',
    'chunks',
    'model_id',
    'x',
    'valueOf',
    'toString',
  );
  const { any } = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(names, tie('any'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(fc.oneof(any, fc.anything({ maxDepth: 2 })), (value) => {
      for (const [, codec] of codecs) {
        const made = codec.decode(value);
        if (isRight(made)) expect(codec.is(made.right)).toBe(true);
        else expect(made.left.length).toBeGreaterThan(0);
      }
    }),
    { numRuns: 80 },
  );
});

it('a token that is an object which cannot become a number threw a TypeError', () => {
  for (const text of ['[{"valueOf":1,"toString":1}]', '[7,{"valueOf":1,"toString":1}]', '[[]]', '["1"]'])
    expect(isRight(wire.Tokens.decode(JSON.parse(text)))).toBe(false);
});
