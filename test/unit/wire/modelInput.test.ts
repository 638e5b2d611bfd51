import { describe, expect, it } from 'vitest';
import type { ModelInputChunk } from '../../../src/wire/chunk.js';
import { chunkLength } from '../../../src/wire/chunk.js';
import { estimateDatumBytes } from '../../../src/wire/datum.js';
import { estimatePromptBytes } from '../../../src/wire/modelInput.js';
import { prepareDatum } from '../../../src/wire/datum.js';
import { ModelInput, ModelInputCodec } from '../../../src/wire/modelInput.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';
import { expectDecoded, expectRefused } from './decoding.js';

const text = (...tokens: number[]): ModelInputChunk => ({ type: 'encoded_text', tokens: Int32Array.from(tokens) });
const image: ModelInputChunk = { type: 'image', data: Uint8Array.of(1, 2, 3), format: 'png', expectedTokens: 5 };
const pointer: ModelInputChunk = { type: 'image_asset_pointer', location: 'gs://a', format: 'jpeg' };
/** dtype 0, rank 2, 3 frames of 80. */
const audio: ModelInputChunk = { type: 'dmel', dmel: Uint8Array.of(0, 2, 3, 80) };

describe('ModelInput', () => {
  it('is made of token ids', () => {
    const input = ModelInput.fromInts([1, 2, 3]);
    expect(input.chunks).toStrictEqual([text(1, 2, 3)]);
    expect(input.toInts()).toStrictEqual(Int32Array.of(1, 2, 3));
    expect(input.length).toBe(3);
    expect(ModelInput.empty().length).toBe(0);
  });

  it.each([
    ['a negative one', [1, -2], 'token 1 is -2'],
    ['one of 2³¹', [2 ** 31], 'token 0 is 2147483648'],
    ['a fraction', [0, 1, 2.5], 'token 2 is 2.5'],
    ['NaN', [NaN], 'token 0 is NaN'],
    ['text', ['7' as never], 'token 0 is 7'],
  ])('is not made of %s', (_, tokens, said) => {
    expect(() => ModelInput.fromInts(tokens)).toThrow(
      new ValidationError(`${said}: token ids are integers from 0 to 2³¹ − 1`),
    );
  });

  it('refuses a text chunk that holds anything else, however it came about', () => {
    expect(() => new ModelInput([text(1), text(3, -1)])).toThrow(
      new ValidationError('chunk 1: token 1 is -1: token ids are integers from 0 to 2³¹ − 1'),
    );
    expect(() => new ModelInput([{ type: 'encoded_text', tokens: [1] as never }])).toThrow(
      new ValidationError('chunk 0: tokens must be an Int32Array'),
    );
  });

  it('does not change when something is appended', () => {
    const input = ModelInput.fromInts([1]);
    const longer = input.append(text(2)).appendInt(3);
    expect(input.length).toBe(1);
    expect(longer.toInts()).toStrictEqual(Int32Array.of(1, 2, 3));
  });

  it('refuses a malformed chunk', () => {
    expect(() => ModelInput.empty().append({ type: 'image', data: Uint8Array.of(1), format: 'gif' as never })).toThrow(
      ValidationError,
    );
    expect(() => ModelInput.empty().append({ type: 'video' } as never)).toThrow(
      new ValidationError(
        'chunk 0: not a chunk, expected an object whose type is one of encoded_text, image, image_asset_pointer, dmel',
      ),
    );
    expect(() => ModelInput.empty().appendInt(-1)).toThrow(ValidationError);
  });

  it.each<[string, unknown, string]>([
    ['an image of another format', { ...image, format: 'webp' }, "chunk 1: format: expected 'png' | 'jpeg'"],
    ['base64 text as image data', { ...image, data: 'iVBORw0KGgo=' }, 'chunk 1: data: expected base64 bytes'],
    ['base64 text as audio', { type: 'dmel', dmel: 'AAEC' }, 'chunk 1: dmel: expected base64 bytes'],
    ['a misspelt key', { ...image, expected_tokens: 5 }, 'chunk 1: expected_tokens: unknown key'],
    ['tokens that are negative', { ...image, expectedTokens: -1 }, 'chunk 1: expectedTokens: expected an integer ≥ 0'],
    ['a pointer to nowhere', { type: 'image_asset_pointer', format: 'png' }, 'chunk 1: location: expected string'],
    [
      'null',
      null,
      'chunk 1: not a chunk, expected an object whose type is one of encoded_text, image, image_asset_pointer, dmel',
    ],
  ])('let %s through to the service, where the number was taken already', (_, chunk, said) => {
    expect(() => new ModelInput([text(1), chunk as never])).toThrow(new ValidationError(said));
  });

  it('is not made of anything but a list', () => {
    expect(() => new ModelInput(text(1) as never)).toThrow(
      new ValidationError('a ModelInput is made of a list of chunks'),
    );
  });

  it('has token ids only where all of it is text', () => {
    expect(() => new ModelInput([text(1), image]).toInts()).toThrow(
      new ValidationError('chunk 1 is image, not text: it has no token ids'),
    );
  });

  it('counts the positions of every kind of chunk', () => {
    expect(new ModelInput([text(1, 2), image, audio]).length).toBe(2 + 5 + 3);
    expect(chunkLength({ type: 'dmel', dmel: Uint8Array.of(254, 3, 1, 128, 2) })).toBe(256);
    expect(() => chunkLength(pointer)).toThrow(
      new ValidationError('the length of an image_asset_pointer chunk is unknown: set its expectedTokens'),
    );
  });

  it.each([
    [[9], 'dmel bytes do not start with a tensor header'],
    [[], 'dmel bytes do not start with a tensor header'],
    [[0, 1], 'dmel bytes have a truncated tensor header'],
    [[0, 0], 'dmel tensor has no time dimension'],
  ])('refuses audio without a proper header %j', (bytes, said) => {
    expect(() => chunkLength({ type: 'dmel', dmel: Uint8Array.from(bytes) })).toThrow(new ValidationError(said));
  });
});

describe('ModelInput as JSON', () => {
  const wire = {
    chunks: [
      { tokens: [1, 2], type: 'encoded_text' },
      { data: 'AQID', format: 'png', expected_tokens: 5, type: 'image' },
      { location: 'gs://a', format: 'jpeg', type: 'image_asset_pointer' },
      { dmel: 'AAIDUA==', type: 'dmel' },
    ],
  };
  const input = new ModelInput([text(1, 2), image, pointer, audio]);

  it('is', () => {
    expect(ModelInputCodec.is(input)).toBe(true);
    expect(ModelInputCodec.is(wire)).toBe(false);
  });
  it('decodes', () => {
    expectDecoded(ModelInputCodec, wire, input);
    expectRefused(
      ModelInputCodec,
      { chunks: [{ type: 'encoded_text', tokens: [-1] }] },
      'chunks.0.tokens: entry 0 is not a token id',
    );
    expectRefused(ModelInputCodec, [], 'expected ModelInput');
  });
  it('encodes', () => {
    expect(ModelInputCodec.encode(input)).toStrictEqual(wire);
  });
});

describe('estimates', () => {
  it('count ten bytes a prompt token and the raw size of the rest', () => {
    expect(estimatePromptBytes(new ModelInput([text(1, 2), image, pointer, audio]))).toBe(20 + 3 + 6 + 4);
  });

  it('count four bytes a training token, the bytes of tensors and eight an index', () => {
    const dense = prepareDatum(
      { modelInput: ModelInput.fromInts([1, 2]), lossFnInputs: { target_tokens: [1, 2], weights: [1, 1] } },
      0,
    );
    expect(estimateDatumBytes(dense)).toBe(2 * 4 + 2 * 8 + 2 * 4);
    const sparse = prepareDatum(
      { modelInput: ModelInput.fromInts([1]), lossFnInputs: { weights: [[0, 0, 0, 0, 1]] } },
      0,
    );
    expect(estimateDatumBytes(sparse)).toBe(4 + 4 + 8 * (2 + 1));
  });
});
