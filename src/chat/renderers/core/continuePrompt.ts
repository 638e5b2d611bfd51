import type { ModelInputChunk } from '../../../wire/chunk.js';
import { ModelInput } from '../../../wire/modelInput.js';
import { joinText, remainderAfter } from '../../datum/chunks.js';
import { textOf } from './content.js';
import type { Message, ToolCall } from './Message.js';
import type { Renderer } from './Renderer.js';
import { parseJson } from '../../../support/parseJson.js';

/** A prompt, exactly what was sampled for it, and both as messages. */
export interface Exchange {
  /** The conversation the prompt was made of. */
  readonly messages: readonly Message[];
  /** What was sampled from. */
  readonly prompt: ModelInput;
  /** What was sampled, as ids. */
  readonly tokens: Int32Array;
  /** The same as a message, as the renderer parsed it. */
  readonly reply: Message;
}

/** The next prompt of a conversation, and whether it extends what was sampled. */
export interface ContinuedPrompt {
  /** The prompt to continue with. */
  readonly prompt: ModelInput;
  /** Why it does not extend the exchange before it; undefined if it does. */
  readonly broken: string | undefined;
}

/**
 * The prompt for a conversation that continues an exchange: the ids that were sampled stay as they are, and only what
 * comes after them is encoded. Text encoded again may become other ids than those that were sampled, and training on
 * those would be training on something the model never said.
 *
 * Falls back to the plain prompt, and says why, if the conversation is another one or the family rewrites its
 * history: one that drops thinking from earlier turns, for example.
 */
export function continuePrompt(
  renderer: Renderer,
  { messages, prompt, tokens, reply }: Exchange,
  next: readonly Message[],
): ContinuedPrompt {
  const plain = renderer.buildGenerationPrompt(next);
  const history = [...messages, reply];
  if (!startsWith(next, history)) return { prompt: plain, broken: 'the history was changed' };
  const seen: readonly ModelInputChunk[] = [...prompt.chunks, { type: 'encoded_text', tokens }];
  if (remainderAfter(seen, plain.chunks) !== undefined) return { prompt: plain, broken: undefined };
  // With the history as it was sent, which may lack the reasoning that the reply had.
  const written = renderer.buildSupervisedExample(next.slice(0, history.length)).modelInput;
  const follows = remainderAfter(written.chunks, plain.chunks);
  const end = missingEnd(renderer, tokens, written);
  if (follows === undefined || end === undefined) {
    return { prompt: plain, broken: `${renderer.name} writes earlier turns differently than it sampled them` };
  }
  return { prompt: new ModelInput(joinText([...seen, ...end, ...follows])), broken: undefined };
}

/** A reply that was cut off never ended its turn; the template does, and so must the prompt. Undefined: no telling how. */
function missingEnd(renderer: Renderer, tokens: Int32Array, written: ModelInput): ModelInputChunk[] | undefined {
  const last = written.chunks.at(-1);
  const end = last?.type === 'encoded_text' ? last.tokens.at(-1) : undefined;
  if (end === undefined) return undefined;
  if (end === tokens.at(-1)) return [];
  const stops: readonly unknown[] = renderer.getStopSequences();
  return stops.includes(end) ? [{ type: 'encoded_text', tokens: Int32Array.of(end) }] : undefined;
}

function startsWith(messages: readonly Message[], history: readonly Message[]): boolean {
  return messages.length > history.length && history.every((message, index) => sameMessage(message, messages[index]!));
}

/** Whether two messages say the same. Clients drop reasoning and give calls other ids and spacing: that is no change. */
function sameMessage(a: Message, b: Message): boolean {
  const callsOf = ({ toolCalls = [] }: Message): string => JSON.stringify(toolCalls.map(plainCall));
  const toolsOf = ({ tools = [] }: Message): string => JSON.stringify(tools);
  return (
    a.role === b.role &&
    textOf(a) === textOf(b) &&
    callsOf(a) === callsOf(b) &&
    mediaOf(a) === mediaOf(b) &&
    toolsOf(a) === toolsOf(b)
  );
}

/** Images and audio, as text that differs where they do. */
function mediaOf({ content }: Message): string {
  if (typeof content === 'string') return '';
  const media = content.flatMap((part) => {
    if (part.type === 'image') return [part.location ?? Buffer.from(part.data ?? []).toString('base64')];
    return part.type === 'audio' ? [Buffer.from(part.dmel).toString('base64')] : [];
  });
  return media.join(' ');
}

const plainCall = ({ name, arguments: json }: ToolCall): unknown => [name, parseJson(json, json)];
