import type { ModelInput } from './modelInput.js';

/** How many tokens an input has, as far as that is known here: an image or a sound that does not tell counts as none. */
export function countTokens({ chunks }: ModelInput): number {
  let tokens = 0;
  for (const chunk of chunks) {
    if (chunk.type === 'encoded_text') tokens += chunk.tokens.length;
    else tokens += (chunk as { readonly expectedTokens?: number | undefined }).expectedTokens ?? 0;
  }
  return tokens;
}
