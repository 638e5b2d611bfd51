import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { RendererError } from './RendererError.js';

const SHIFT = 0xf0000;
const SHIFTED = /[\u{f0000}-\u{10ffff}]/gu;
/** White space, quotes and backslashes keep their place: templates trim and quote by them. Surrogate pairs are no part of any token. */
const MAPPED = /[^\s"'\\\u{10000}-\u{10ffff}]/gu;

/**
 * Marks text that came from a message, character by character, so that it can be told from the template's own words after rendering: it is
 * moved to the private planes 15 and 16, where no special token lives, and moved back with {@link unmark}.
 *
 * @throws RendererError for text that already has characters of those planes
 */
export function mark(text: string): string {
  if (text.search(SHIFTED) >= 0)
    throw new RendererError('text with characters of the private planes 15 and 16 cannot be rendered by a template');
  return text.replace(MAPPED, (character) => String.fromCodePoint(SHIFT + character.codePointAt(0)!));
}

/** The text as it was before {@link mark}. */
export function unmark(text: string): string {
  return text.replace(SHIFTED, (character) => String.fromCodePoint(character.codePointAt(0)! - SHIFT));
}

/**
 * Marks the strings of a value, keys included, that could begin a special token. The others stay as they are, since templates compare them
 * (`type == "string"`).
 */
export function createMarkDeep(tokenizer: Tokenizer): (value: unknown) => unknown {
  const first = new Set([...tokenizer.specialTokens.keys()].map((special) => special.charAt(0)));
  const risky = (text: string): boolean => [...text].some((character) => first.has(character));
  const visit = (value: unknown): unknown => {
    if (typeof value === 'string') return risky(value) ? mark(value) : value;
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, field]) => [risky(key) ? mark(key) : key, visit(field)]),
    );
  };
  return visit;
}
