import { EngineUserError } from '../errors.js';
import { encodeText, END_TOKEN, VOCABULARY_SIZE } from '../model/vocabulary.js';

/** Whether the tokens sampled so far end the sequence. */
export type StopRule = (tokens: readonly number[]) => boolean;

/**
 * The rule for a request's `stop`: absent, the end token stops; given, exactly what is listed does, so `[]` lets
 * nothing stop. Text is matched over the bytes sampled, never over the prompt.
 */
export function stopRule(stop: readonly (string | number)[] | undefined): StopRule {
  if (stop === undefined) return (tokens) => tokens.at(-1) === END_TOKEN;
  const endings = stop.map((entry) => {
    if (typeof entry === 'string') {
      if (entry === '') throw new EngineUserError('a stop string must not be empty');
      return encodeText(entry);
    }
    if (!Number.isInteger(entry) || entry < 0 || entry >= VOCABULARY_SIZE) {
      throw new EngineUserError(`stop token ${entry} is outside the vocabulary of 0 to ${VOCABULARY_SIZE - 1}`);
    }
    return Int32Array.of(entry);
  });
  return (tokens) =>
    endings.some((ending) => {
      const from = tokens.length - ending.length;
      return from >= 0 && ending.every((token, index) => tokens[from + index] === token);
    });
}
