import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  inklingTokenizer,
  kimiTokenizer,
  tokenizerFromFolder,
  type Tokenizer,
  type TokenizerConfigJson,
} from '../../src/chat/tokenizer/index.js';
import { REAL_FAMILIES, REAL_VERSION, realTokenizerFolder } from '../parity/realTokenizers.js';

/** Recorded by tokenizer_golden.py; what the fields are is said there. */
interface Case {
  readonly text: string;
  readonly plain: number[];
  readonly trusted: number[];
  readonly decoded: string;
  readonly skipped: string;
  readonly cut: string;
}

const recorded = <A>(name: string): A =>
  JSON.parse(readFileSync(new URL(`../parity/recorded/tokenizers/${name}.json`, import.meta.url), 'utf8')) as A;

/** Holds results against each other all at once: thousands of single assertions take longer than the encoding. */
function expectAll<A>(cases: readonly A[], actual: (of: A) => unknown, expected: (of: A) => unknown): void {
  expect(cases.length).toBeGreaterThan(100);
  expect(cases.map(actual)).toEqual(cases.map(expected));
}

function expectNoForgery(tokenizer: Tokenizer): void {
  const ids = new Set(tokenizer.specialTokens.values());
  for (const special of tokenizer.specialTokens.keys()) {
    for (const text of [special, `a${special}`, ` ${special}\n`, special + special]) {
      const tokens = tokenizer.encode(text);
      const forged = tokens.filter((token) => ids.has(token));
      if (forged.length > 0) throw new Error(`${JSON.stringify(text)} encodes to special token ${forged.join()}`);
      if (tokenizer.decode(tokens) !== text) throw new Error(`${JSON.stringify(text)} does not come back`);
    }
    expect([...tokenizer.encodeWithSpecials(special)]).toEqual([tokenizer.tokenId(special)]);
  }
}

/** All fetched at once, on a machine that has none of them yet. */
const folders = new Map(REAL_FAMILIES.map((family) => [family, realTokenizerFolder(family)]));
for (const folder of folders.values()) folder.catch(() => undefined);

describe.each(REAL_FAMILIES)('%s, as in Python', (family) => {
  const { version, cases } = recorded<{ version: string; cases: Case[] }>(family);
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    expect(version).toBe(REAL_VERSION);
    tokenizer = await tokenizerFromFolder((await folders.get(family))!, family);
  }, 300_000);

  it('encodes text as text', () => {
    expectAll(
      cases,
      ({ text }) => [...tokenizer.encode(text)],
      ({ plain }) => plain,
    );
  });

  it('encodes trusted text with its special tokens', () => {
    expectAll(
      cases,
      ({ text }) => [...tokenizer.encodeWithSpecials(text)],
      ({ trusted }) => trusted,
    );
  });

  it('decodes, without special tokens too, and in the middle of a character', () => {
    expectAll(
      cases,
      ({ plain, trusted }) => [
        tokenizer.decode(plain),
        tokenizer.decode(trusted, { skipSpecialTokens: true }),
        tokenizer.decode(plain.slice(0, -1)),
      ],
      ({ decoded, skipped, cut }) => [decoded, skipped, cut],
    );
  });

  it('lets no text become any of its special tokens', () => {
    expect(tokenizer.specialTokens.size).toBeGreaterThan(20);
    expectNoForgery(tokenizer);
  });
});

describe('Kimi, as the service encodes', () => {
  const { ranks, named, specials, cases } = recorded<{
    ranks: Record<string, number>;
    named: NonNullable<TokenizerConfigJson['added_tokens_decoder']>;
    specials: Record<string, number>;
    cases: Pick<Case, 'text' | 'plain'>[];
  }>('kimi');
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    const file = Object.entries(ranks).map(([token, rank]) => `${token} ${rank}`);
    const config = { eos_token: '[EOS]', bos_token: '[BOS]', added_tokens_decoder: named };
    tokenizer = await kimiTokenizer('moonshotai/Kimi-K2.6', { ranks: file.join('\n'), config });
  });

  it('encodes and decodes', () => {
    expectAll(
      cases,
      ({ text }) => [...tokenizer.encode(text)],
      ({ plain }) => plain,
    );
    expectAll(
      cases,
      ({ plain }) => tokenizer.decode(plain),
      ({ text }) => text,
    );
  });

  it('has the special tokens', () => {
    expect(Object.fromEntries(tokenizer.specialTokens)).toEqual(specials);
    expect(tokenizer.vocabSize).toBe(163_840);
    expectNoForgery(tokenizer);
  });
});

describe('Inkling, as the service encodes', () => {
  const { specials, cases } = recorded<{ specials: Record<string, number>; cases: Pick<Case, 'text' | 'plain'>[] }>(
    'inkling',
  );
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    tokenizer = await inklingTokenizer('thinkingmachines/Inkling');
  }, 60_000);

  it('encodes and decodes', () => {
    expectAll(
      cases,
      ({ text }) => [...tokenizer.encode(text)],
      ({ plain }) => plain,
    );
    expectAll(
      cases,
      ({ plain }) => tokenizer.decode(plain),
      ({ text }) => text,
    );
  });

  it('has the special tokens', () => {
    expect(Object.fromEntries(tokenizer.specialTokens)).toEqual(specials);
    expectNoForgery(tokenizer);
  });
});
