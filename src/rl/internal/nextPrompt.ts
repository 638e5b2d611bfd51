import { joinText, remainderAfter } from '../../chat/datum/chunks.js';
import type { Message } from '../../chat/renderers/Message.js';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { EncodedTextChunk } from '../../wire/chunk.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { Turn } from '../rollout.js';

/**
 * The prompt after a turn: what was seen and sampled, token for token, and what the family writes after it.
 *
 * A renderer encodes the parsed answer anew, which need not give the ids that were sampled. Where what follows the answer can
 * be told apart, the sampled ids stay and only that is added; where it cannot (a family that drops thinking from earlier turns, for
 * example), the prompt is the renderer's, and a new datum begins.
 */
export function nextPrompt(
  renderer: Renderer,
  before: readonly Message[],
  said: Message,
  added: readonly Message[],
  { prompt, sequence }: Turn,
): ModelInput {
  const written = renderer.buildGenerationPrompt([...before, said, ...added]);
  const sampled: EncodedTextChunk = { type: 'encoded_text', tokens: sequence.tokens };
  const seen = [...prompt.chunks, sampled];
  if (remainderAfter(seen, written.chunks) !== undefined) return written;
  const upToAnswer = renderer.buildSupervisedExample([...before, said]).modelInput;
  const follows = remainderAfter(upToAnswer.chunks, written.chunks);
  if (follows === undefined || lastToken(upToAnswer) !== sequence.tokens.at(-1)) return written;
  return new ModelInput(joinText([...seen, ...follows]));
}

function lastToken({ chunks }: ModelInput): number | undefined {
  const last = chunks.at(-1);
  return last?.type === 'encoded_text' ? last.tokens.at(-1) : undefined;
}
