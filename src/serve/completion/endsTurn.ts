import type { Renderer } from '../../chat/renderers/core/Renderer.js';

/** Whether a token only ends a turn or a text, and is no part of what was said. */
export function endsTurn(renderer: Renderer, token: number | undefined): boolean {
  if (token === undefined) return false;
  const stops: readonly unknown[] = renderer.getStopSequences();
  return token === renderer.tokenizer.eosTokenId || stops.includes(token);
}
