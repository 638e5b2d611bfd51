/** 64 KiB. */
const SLAB_TOKENS = 16_384;
/** Longer ones have memory of their own. */
const LONGEST_SHARED = SLAB_TOKENS / 8;

let slab = new Int32Array();
let used = 0;

/**
 * A copy of the tokens. Short copies share memory with others made before and after: thousands of prompts are copied at once, and
 * memory for each of them takes longer than the copying. It is freed when none of those copies is needed any more.
 */
export function copyTokens(tokens: Int32Array): Int32Array {
  const { length } = tokens;
  if (length > LONGEST_SHARED) return tokens.slice();
  if (used + length > slab.length) {
    slab = new Int32Array(SLAB_TOKENS);
    used = 0;
  }
  const copy = slab.subarray(used, used + length);
  copy.set(tokens);
  used += length;
  return copy;
}
