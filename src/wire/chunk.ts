import type { Either } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { Base64Bytes, NonNegativeInteger, Tokens } from './number.js';
import { describeErrors, optional, request, withDefault } from './record.js';
import { ValidationError } from './tinkerError.js';

const ImageFormat = t.union([t.literal('png'), t.literal('jpeg')], "'png' | 'jpeg'");

export const EncodedTextChunk = request('EncodedTextChunk', {
  tokens: Tokens,
  type: t.literal('encoded_text'),
});
/** Text, as token ids. */
export interface EncodedTextChunk {
  /** Which kind of chunk this is. */
  readonly type: 'encoded_text';
  /** Ids from 0 to 2³¹ − 1. */
  readonly tokens: Int32Array;
}

export const ImageChunk = request('ImageChunk', {
  data: Base64Bytes,
  format: ImageFormat,
  expected_tokens: optional(NonNegativeInteger),
  type: t.literal('image'),
});
/** An image, as the bytes of its file. */
export interface ImageChunk {
  /** Which kind of chunk this is. */
  readonly type: 'image';
  /** The file's own bytes, not base64. */
  readonly data: Uint8Array;
  /** What kind of file it is. */
  readonly format: 'png' | 'jpeg';
  /** How many positions of the context it takes, where the caller knows. Default: the service counts. */
  readonly expectedTokens?: number;
}

export const ImageAssetPointerChunk = request('ImageAssetPointerChunk', {
  location: t.string,
  format: ImageFormat,
  expected_tokens: optional(NonNegativeInteger),
  type: t.literal('image_asset_pointer'),
});
/** An image that the service has already. */
export interface ImageAssetPointerChunk {
  /** Which kind of chunk this is. */
  readonly type: 'image_asset_pointer';
  /** Where the service keeps it. */
  readonly location: string;
  /** What kind of file it is. */
  readonly format: 'png' | 'jpeg';
  /** How many positions of the context it takes, where the caller knows. Default: the service counts. */
  readonly expectedTokens?: number;
}

export const DmelChunk = request('DmelChunk', {
  dmel: Base64Bytes,
  type: withDefault(t.literal('dmel'), 'dmel'),
});
/** Audio, as discretised mel spectra. */
export interface DmelChunk {
  /** Which kind of chunk this is. */
  readonly type: 'dmel';
  /** The bytes as the service takes them, not base64. */
  readonly dmel: Uint8Array;
}

const AnyChunk = t.union([EncodedTextChunk, ImageChunk, ImageAssetPointerChunk, DmelChunk], 'ModelInputChunk');
interface ChunkKind extends t.Decoder<unknown, ModelInputChunk> {
  is(u: unknown): boolean;
  hasOnlyKnownKeys(input: object): boolean;
  prepare(input: never, context?: t.Context): Either<t.Errors, unknown>;
}
const BY_TYPE: Readonly<Record<string, ChunkKind>> = {
  encoded_text: EncodedTextChunk,
  image: ImageChunk,
  image_asset_pointer: ImageAssetPointerChunk,
  dmel: DmelChunk,
};

function kindOf(u: unknown): ChunkKind | undefined {
  const { type } = (typeof u === 'object' && u !== null ? u : {}) as { type?: unknown };
  return typeof type === 'string' && Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined;
}

/** Checks a chunk that a caller made, of any kind. @throws ValidationError naming the chunk and the field. */
export function checkChunk(chunk: ModelInputChunk, where: string): void {
  const kind = kindOf(chunk);
  if (kind === undefined) {
    const known = Object.keys(BY_TYPE).join(', ');
    throw new ValidationError(`${where}: not a chunk, expected an object whose type is one of ${known}`);
  }
  if (kind.is(chunk) && kind.hasOnlyKnownKeys(chunk)) return;
  const prepared = kind.prepare(chunk as never, []);
  if (prepared._tag === 'Left') throw new ValidationError(`${where}: ${describeErrors(prepared.left)}`);
}

/** Any chunk. A malformed one is refused for what is wrong with its own kind, not with all the others as well. */
export const ModelInputChunk: typeof AnyChunk = new t.UnionType(
  AnyChunk.name,
  AnyChunk.is,
  (u, context) => {
    const kind = kindOf(u);
    // A union's context continues with its member's, as io-ts itself has it.
    return kind === undefined ? t.failure(u, context) : kind.validate(u, t.appendContext(context, kind.name, kind));
  },
  AnyChunk.encode,
  AnyChunk.types,
);
export type ModelInputChunk = EncodedTextChunk | ImageChunk | ImageAssetPointerChunk | DmelChunk;

/**
 * How many positions of the context a chunk takes.
 *
 * @throws ValidationError for an image whose `expectedTokens` is not set: only the model's own rule can tell.
 */
export function chunkLength(chunk: ModelInputChunk): number {
  switch (chunk.type) {
    case 'encoded_text':
      return chunk.tokens.length;
    case 'dmel':
      return dmelFrames(chunk.dmel);
    default:
      if (chunk.expectedTokens === undefined) {
        throw new ValidationError(`the length of an ${chunk.type} chunk is unknown: set its expectedTokens`);
      }
      return chunk.expectedTokens;
  }
}

const CONSTANT_TENSOR = 254;
const LAST_DTYPE = 7;

/** The first extent in the header of a serialised mel spectrogram: [constant marker], dtype, rank, extents as varints. */
function dmelFrames(bytes: Uint8Array): number {
  let at = bytes[0] === CONSTANT_TENSOR ? 1 : 0;
  const dtype = bytes[at++];
  if (dtype === undefined || dtype > LAST_DTYPE)
    throw new ValidationError('dmel bytes do not start with a tensor header');
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined || scale > 2 ** 56) throw new ValidationError('dmel bytes have a truncated tensor header');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  if (varint() < 1) throw new ValidationError('dmel tensor has no time dimension');
  return varint();
}
