import type { ModelInputChunk } from '../../../wire/chunk.js';
import type { ImagePart } from './Message.js';
import { RendererError } from './RendererError.js';

/** Tokens that a family spends on an image of this size. */
export type ImageTokenRule = (width: number, height: number) => number;

/** The chunk for an image, with its token count by the family's rule. Throws a `RendererError` if the size cannot be known. */
export function imageChunk(part: ImagePart, rule: ImageTokenRule): ModelInputChunk {
  const { data, location, format } = part;
  const count = (): number => part.expectedTokens ?? countTokens(part, rule);
  if (data !== undefined) return { type: 'image', data, format, expectedTokens: count() };
  if (location !== undefined) return { type: 'image_asset_pointer', location, format, expectedTokens: count() };
  throw new RendererError('an image part needs data or a location');
}

function countTokens(part: ImagePart, rule: ImageTokenRule): number {
  if (part.width !== undefined && part.height !== undefined) return rule(part.width, part.height);
  if (part.data === undefined)
    throw new RendererError('an image by location needs width and height, or expectedTokens');
  const { width, height } = imageSize(part.data, part.format);
  return rule(width, height);
}

/** Width and height from the header of a PNG or JPEG. Throws a `RendererError` when the bytes are neither. */
export function imageSize(data: Uint8Array, format: 'png' | 'jpeg'): { width: number; height: number } {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const size = format === 'png' ? pngSize(view) : jpegSize(view);
  if (size === undefined) throw new RendererError(`the image bytes are not a ${format} with a readable size`);
  return size;
}

const PNG_SIGNATURE = 0x89504e47;

function pngSize(view: DataView): { width: number; height: number } | undefined {
  if (view.byteLength < 24 || view.getUint32(0) !== PNG_SIGNATURE) return undefined;
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function jpegSize(view: DataView): { width: number; height: number } | undefined {
  if (view.byteLength < 4 || view.getUint16(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 <= view.byteLength;) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    // Fill bytes and markers without a length.
    if (marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
      at += marker === 0xff ? 1 : 2;
      continue;
    }
    // Every start-of-frame carries the size; C4, C8 and CC are tables, not frames.
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    }
    at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}

/** Python's `round`: halves go to the even neighbour. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

const QWEN_PATCH = 32; // 16 pixels a patch, merged two by two
const QWEN_MIN_PIXELS = 65_536;
const QWEN_MAX_PIXELS = 16_777_216;

/** Qwen3-VL and Qwen3.5: sides rounded to 32 pixels, the area kept between 2¹⁶ and 2²⁴; one token per 32 × 32. */
export const qwenImageTokens: ImageTokenRule = (width, height) => {
  if (Math.max(width, height) / Math.min(width, height) > 200) {
    throw new RendererError(`an image of ${width}×${height} is too long for Qwen: sides may differ by a factor of 200`);
  }
  let rows = Math.max(1, roundHalfEven(height / QWEN_PATCH));
  let columns = Math.max(1, roundHalfEven(width / QWEN_PATCH));
  const area = rows * columns * QWEN_PATCH * QWEN_PATCH;
  if (area > QWEN_MAX_PIXELS) {
    const beta = Math.sqrt((height * width) / QWEN_MAX_PIXELS);
    rows = Math.max(1, Math.floor(height / beta / QWEN_PATCH));
    columns = Math.max(1, Math.floor(width / beta / QWEN_PATCH));
  } else if (area < QWEN_MIN_PIXELS) {
    const beta = Math.sqrt(QWEN_MIN_PIXELS / (height * width));
    rows = Math.ceil((height * beta) / QWEN_PATCH);
    columns = Math.ceil((width * beta) / QWEN_PATCH);
  }
  return rows * columns;
};

const KIMI_PATCH = 14;
const KIMI_PATCHES = 16_384;
const KIMI_SIDE = 512;

/** Kimi K2.5: scaled down to 16,384 patches of 14 pixels and 512 a side, padded to 28 pixels; one token per 28 × 28. */
export const kimiImageTokens: ImageTokenRule = (width, height) => {
  const patches = Math.max(1, Math.floor(width / KIMI_PATCH)) * Math.max(1, Math.floor(height / KIMI_PATCH));
  const limit = KIMI_SIDE * KIMI_PATCH;
  const scale = Math.min(1, Math.sqrt(KIMI_PATCHES / patches), limit / width, limit / height);
  const tokens = (side: number): number =>
    Math.ceil(Math.min(Math.max(1, Math.floor(side * scale)), limit) / (2 * KIMI_PATCH));
  return tokens(width) * tokens(height);
};

const INKLING_PATCH = 40;

/** Inkling: patches of 40 pixels, with one column more if the width is a multiple of them. */
export const inklingImageTokens: ImageTokenRule = (width, height) =>
  (Math.floor(width / INKLING_PATCH) + 1) * Math.ceil(height / INKLING_PATCH);
