import { EngineUserError } from '../errors.js';
import type { TokenTable } from '../model/vocabulary.js';

/** Whether the tokens sampled so far end the sequence. */
export type StopRule = (tokens: readonly number[]) => boolean;

const encoder = new TextEncoder();

/**
 * The rule for a request's `stop`: absent, the end tokens stop; given, exactly what is listed does, so `[]` lets
 * nothing stop. Text is matched over the bytes sampled, never over the prompt.
 */
export function stopRule(
  stop: readonly (string | number)[] | undefined,
  { endTokens, bytesOf }: TokenTable,
  vocabulary: number,
): StopRule {
  if (stop === undefined) return (tokens) => endTokens.includes(tokens.at(-1)!);
  const rules = stop.map((entry): StopRule => {
    if (typeof entry === 'number') {
      if (!Number.isInteger(entry) || entry < 0 || entry >= vocabulary) {
        throw new EngineUserError(`stop token ${entry} is outside the vocabulary of 0 to ${vocabulary - 1}`);
      }
      return (tokens) => tokens.at(-1) === entry;
    }
    if (entry === '') throw new EngineUserError('a stop string must not be empty');
    if (bytesOf === undefined)
      throw new EngineUserError('this model has no text of its tokens: stop at token ids instead');
    return endsIn(encoder.encode(entry), bytesOf);
  });
  return (tokens) => rules.some((rule) => rule(tokens));
}

/** Whether the text is complete within the last token. */
function endsIn(text: Uint8Array, bytesOf: (token: number) => Uint8Array): StopRule {
  return (tokens) => {
    const last = bytesOf(tokens.at(-1)!);
    if (last.length === 0) return false;
    // As many bytes before the last token as the text may reach back.
    const tail = [...last];
    for (let i = tokens.length - 2; i >= 0 && tail.length < last.length + text.length - 1; i--) {
      const bytes = bytesOf(tokens[i]!);
      // A special token is no text, and text does not reach over it.
      if (bytes.length === 0) break;
      tail.unshift(...bytes);
    }
    const first = Math.max(0, tail.length - last.length - text.length + 1);
    for (let at = first; at + text.length <= tail.length; at++) {
      if (text.every((byte, i) => tail[at + i] === byte)) return true;
    }
    return false;
  };
}
