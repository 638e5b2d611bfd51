import * as t from 'io-ts';
import { checkChunk, chunkLength, ModelInputChunk, type EncodedTextChunk } from './chunk.js';
import { firstBadToken } from './number.js';
import { request } from './record.js';
import { ValidationError } from './tinkerError.js';

/** What a model reads: text tokens, images and audio, in order. Immutable; every change makes a new one. */
export class ModelInput {
  /** @throws ValidationError for a chunk of an unknown kind, or one that holds what its kind cannot. */
  constructor(
    /** The parts, in order. */
    readonly chunks: readonly ModelInputChunk[],
  ) {
    if (!Array.isArray(chunks)) throw new ValidationError('a ModelInput is made of a list of chunks');
    chunks.forEach((chunk: ModelInputChunk, index) => {
      // Text first, and by hand: nearly every chunk is text, and its mistakes are worth naming token by token.
      if (chunk?.type === 'encoded_text') {
        if (!(chunk.tokens instanceof Int32Array))
          throw new ValidationError(`chunk ${index}: tokens must be an Int32Array`);
        checkTokens(chunk.tokens, chunks.length === 1 ? '' : `chunk ${index}: `);
      } else checkChunk(chunk, `chunk ${index}`);
    });
  }

  /** One text chunk of the given tokens. @throws ValidationError naming the first entry that is not a token id. */
  static fromInts(tokens: ArrayLike<number>): ModelInput {
    return new ModelInput([textChunk(tokens)]);
  }

  /** An input without any chunks. */
  static empty(): ModelInput {
    return new ModelInput([]);
  }

  /** The tokens, if every chunk is text. @throws ValidationError if one is not. */
  toInts(): Int32Array {
    if (this.chunks.length === 1 && this.chunks[0]?.type === 'encoded_text') return this.chunks[0].tokens;
    const parts = this.chunks.map((chunk, index) => {
      if (chunk.type !== 'encoded_text')
        throw new ValidationError(`chunk ${index} is ${chunk.type}, not text: it has no token ids`);
      return chunk.tokens;
    });
    const tokens = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      tokens.set(part, at);
      at += part.length;
    }
    return tokens;
  }

  /** Positions of the context this input takes. */
  get length(): number {
    let length = 0;
    for (const chunk of this.chunks) length += chunk.type === 'encoded_text' ? chunk.tokens.length : chunkLength(chunk);
    return length;
  }

  /** The same input with one more chunk. @throws ValidationError for a malformed chunk. */
  append(chunk: ModelInputChunk): ModelInput {
    return new ModelInput([...this.chunks, chunk]);
  }

  /** A new input with one more token at the end; this one stays as it is. */
  appendInt(token: number): ModelInput {
    return new ModelInput([...this.chunks, textChunk([token])]);
  }
}

// A prompt travels as JSON, about ten characters per token.
const JSON_BYTES_PER_TOKEN = 10;

/** About how many bytes chunks take on the wire. */
export const chunkBytes = (chunks: readonly ModelInputChunk[], bytesPerToken: number): number =>
  chunks.reduce((sum, chunk) => {
    switch (chunk.type) {
      case 'encoded_text':
        return sum + chunk.tokens.length * bytesPerToken;
      case 'image':
        return sum + chunk.data.length;
      case 'image_asset_pointer':
        return sum + chunk.location.length;
      case 'dmel':
        return sum + chunk.dmel.length;
    }
  }, 0);

/** What a prompt takes of the sampling dispatch budget. */
export const estimatePromptBytes = ({ chunks }: ModelInput): number => chunkBytes(chunks, JSON_BYTES_PER_TOKEN);

/** A deep copy of the input's chunks. */
export const copyChunks = ({ chunks }: ModelInput): readonly ModelInputChunk[] =>
  chunks.map((chunk) =>
    chunk.type === 'encoded_text'
      ? { type: 'encoded_text', tokens: chunk.tokens.slice() }
      : (structuredClone(chunk) as ModelInputChunk),
  );

function checkTokens(tokens: ArrayLike<number>, where = ''): void {
  const bad = firstBadToken(tokens);
  if (bad < 0) return;
  const why = 'token ids are integers from 0 to 2³¹ − 1';
  throw new ValidationError(`${where}token ${bad} is ${String(tokens[bad])}: ${why}`);
}

/** A chunk of tokens; an Int32Array is checked by the ModelInput that is made of it. */
function textChunk(tokens: ArrayLike<number>): EncodedTextChunk {
  if (tokens instanceof Int32Array) return { type: 'encoded_text', tokens };
  // Before they become 32-bit integers, which would hide what is wrong with them.
  checkTokens(tokens);
  return { type: 'encoded_text', tokens: new Int32Array(tokens) };
}

const RawModelInput = request('ModelInput', { chunks: t.array(ModelInputChunk) });

export const ModelInputCodec: t.Type<ModelInput, object> = new t.Type<ModelInput, object>(
  'ModelInput',
  (u): u is ModelInput => u instanceof ModelInput,
  (u, context) => {
    const raw = RawModelInput.validate(u, context);
    return raw._tag === 'Left' ? raw : t.success(new ModelInput(raw.right.chunks));
  },
  (input) => RawModelInput.encode({ chunks: [...input.chunks] }),
);
