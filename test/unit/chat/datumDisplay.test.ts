import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  bitsPerByte,
  datumFromExample,
  datumFromTokensWeights,
  formatDatum,
  meanNll,
} from '../../../src/chat/datum/index.js';
import { ByteTokenizer, type Tokenizer } from '../../../src/chat/tokenizer/index.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { TensorData } from '../../../src/wire/tensor.js';

const tokenizer = new ByteTokenizer();
const datumOf = (text: string, weights: readonly number[]) =>
  datumFromTokensWeights(tokenizer.encode(text), weights, { reduction: 'sum' });
const GREEN = '\u001B[32m';
const YELLOW = '\u001B[33m';
const RED = '\u001B[31m';
const RESET = '\u001B[39m';

describe('formatDatum', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('shows what is trained on, what is not, and what is trained against', () => {
    const datum = datumOf('abcd', [0, 0, 1, -1]);
    expect(formatDatum(datum, tokenizer, { colors: true })).toBe(`${YELLOW}ab${RESET}${GREEN}c${RESET}${RED}d${RESET}`);
    expect(formatDatum(datum, tokenizer, { colors: false })).toBe('ab⟦c⟧⟪d⟫');
  });

  it('keeps characters whole and colours lines one by one', () => {
    const datum = datumOf('é\n汉', [0, 0, 0, 1, 1, 1]);
    expect(formatDatum(datum, tokenizer, { colors: true, lineEnds: true })).toBe(
      `${YELLOW}é↵${RESET}\n${GREEN}汉${RESET}`,
    );
  });

  it('lets no text steer the terminal', () => {
    const shown = formatDatum(datumOf('\u001B[2J\u0007\u009B\t', [0, 0, 0, 0, 0, 0, 0, 0]), tokenizer, {
      colors: false,
    });
    expect(shown).toBe('␛[2J␇\uFFFD\t');
  });

  it('shows images and audio by their size', () => {
    const image = { type: 'image', data: Uint8Array.of(1), format: 'png', expectedTokens: 64 } as const;
    const text = { type: 'encoded_text', tokens: tokenizer.encode('ab') } as const;
    const weights = [0, 0, ...new Array<number>(64).fill(0), 1, 1];
    const datum = datumFromExample({ modelInput: new ModelInput([text, image, text]), weights });
    expect(formatDatum(datum, tokenizer, { colors: false })).toBe('ab[image: 64 tokens]⟦ab⟧');
  });

  it('takes advantages where there are no weights, or what it is told', () => {
    const modelInput = ModelInput.fromInts([97, 98]);
    const datum = { modelInput, lossFnInputs: { target_tokens: [98, 99], advantages: [-1, 0], logprobs: [0, -1] } };
    expect(formatDatum(datum, tokenizer, { colors: false })).toBe('a⟪b⟫c');
    expect(formatDatum(datum, tokenizer, { colors: false, key: 'logprobs' })).toBe('ab⟪c⟫');
    expect(() => formatDatum(datum, tokenizer, { key: 'other' })).toThrow(/the datum has no other to show/);
  });

  it('respects NO_COLOR', () => {
    vi.stubEnv('NO_COLOR', '1');
    expect(formatDatum(datumOf('ab', [0, 1]), tokenizer)).toBe('a⟦b⟧');
    vi.stubEnv('NO_COLOR', '');
    expect(formatDatum(datumOf('ab', [0, 1]), tokenizer)).toContain(GREEN);
  });
});

describe('metrics of a batch', () => {
  const outputs = (...logprobs: number[]) => ({ logprobs: TensorData.from(logprobs, 'float32') });
  /** Two tokens, "he" and "llo". */
  const two = Object.assign(Object.create(tokenizer) as Tokenizer, {
    specialTokens: new Map([['<|end|>', 2]]),
    decode: (tokens: ArrayLike<number>, { skipSpecialTokens = false } = {}) =>
      Array.from(tokens, (token) => (token === 2 && skipSpecialTokens ? '' : ['he', 'llo', '<|end|>'][token])).join(''),
  });
  const data = (targets: number[], weights: number[]) => ({
    modelInput: ModelInput.fromInts(targets),
    lossFnInputs: { target_tokens: targets, weights },
  });

  it('bits a byte of "he" + "llo" at −0.5 and −1.5 are 0.577078', () => {
    expect(bitsPerByte([data([0, 1], [1, 1])], [outputs(-0.5, -1.5)], two)).toBeCloseTo(0.577078, 6);
  });

  it('bits a byte do not depend on the size of weights, nor on special tokens', () => {
    expect(bitsPerByte([data([0, 1, 2], [0.2, 0.1, 0.7])], [outputs(-0.5, -1.5, -9)], two)).toBeCloseTo(0.577078, 6);
  });

  it('mean likelihood is weighted over the whole batch', () => {
    const batch = [data([0, 1], [1, 0]), data([1], [3])];
    expect(meanNll(batch, [outputs(-1, -Infinity), outputs(-2)])).toBeCloseTo(7 / 4, 6);
  });

  it('are NaN where nothing counts', () => {
    expect(meanNll([data([0], [0])], [outputs(-1)])).toBeNaN();
    expect(bitsPerByte([data([0], [0])], [outputs(-1)], two)).toBeNaN();
  });

  it('want outputs that belong to the data', () => {
    expect(() => meanNll([data([0], [1])], [])).toThrow(/1 datums need as many outputs, got 0/);
    expect(() => meanNll([data([0], [1])], [outputs(-1, -2)])).toThrow(
      /data\[0\] has 1 targets, 1 weights and 2 logprobs/,
    );
    expect(() => meanNll([data([0], [1])], [{}])).toThrow(/outputs\[0\] has no logprobs/);
  });
});
