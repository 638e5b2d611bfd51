import { ModelInput } from '../../wire/modelInput.js';
import type { ModelInputChunk } from '../../wire/chunk.js';
import { textOf } from './content.js';
import type { Message, ToolCall } from './Message.js';
import type { Renderer } from './Renderer.js';

/** A prompt, exactly what was sampled for it, and both as messages. */
export interface Exchange {
  /** The conversation the prompt was made of. */
  readonly messages: readonly Message[];
  readonly prompt: ModelInput;
  /** What was sampled, as ids. */
  readonly tokens: Int32Array;
  /** The same as a message, as the renderer parsed it. */
  readonly reply: Message;
}

/** The next prompt of a conversation, and whether it extends what was sampled. */
export interface ContinuedPrompt {
  readonly prompt: ModelInput;
  /** Why it does not extend the exchange before it; undefined where it does. */
  readonly broken: string | undefined;
}

/** One position of an input: a token, or an image or audio as a whole. */
type Item = number | ModelInputChunk;

/**
 * The prompt for a conversation that continues an exchange: the ids that were sampled stay as they are, and only what
 * comes after them is encoded. Text encoded again may become other ids than those that were sampled, and training on
 * those would be training on something the model never said.
 *
 * Falls back to the plain prompt, and says why, where the conversation is another one or the family rewrites its history.
 */
export function continuePrompt(
  renderer: Renderer,
  { messages, prompt, tokens, reply }: Exchange,
  next: readonly Message[],
): ContinuedPrompt {
  const plain = renderer.buildGenerationPrompt(next);
  const history = [...messages, reply];
  if (!startsWith(next, history)) return { prompt: plain, broken: 'the history was changed' };
  if (!renderer.hasExtensionProperty) {
    return { prompt: plain, broken: `${renderer.name} writes earlier turns differently than it sampled them` };
  }
  const whole = itemsOf(plain);
  // With the history as it was sent, which may lack the reasoning that the reply had.
  const written = itemsOf(
    renderer.buildSupervisedExample(next.slice(0, history.length), { trainOn: 'all_tokens' }).modelInput,
  );
  if (!written.every((item, index) => same(item, whole[index]))) {
    return { prompt: plain, broken: `${renderer.name} does not extend this conversation` };
  }
  const rest = whole.slice(written.length);
  return {
    prompt: joined([...itemsOf(prompt), ...tokens, ...missingEnd(renderer, tokens, written), ...rest]),
    broken: undefined,
  };
}

/** A reply that was cut off never ended its turn; the template does, and so must the prompt. */
function missingEnd(renderer: Renderer, tokens: Int32Array, written: readonly Item[]): Item[] {
  const stops: readonly unknown[] = renderer.getStopSequences();
  const end = written.at(-1)!;
  return stops.includes(end) && end !== tokens.at(-1) ? [end] : [];
}

function itemsOf({ chunks }: ModelInput): Item[] {
  return chunks.flatMap((chunk): Item[] => (chunk.type === 'encoded_text' ? Array.from(chunk.tokens) : [chunk]));
}

const same = (a: Item, b: Item | undefined): boolean =>
  a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b));

function joined(items: readonly Item[]): ModelInput {
  const chunks: ModelInputChunk[] = [];
  let text: number[] = [];
  const close = (): void => {
    if (text.length > 0) chunks.push({ type: 'encoded_text', tokens: Int32Array.from(text) });
    text = [];
  };
  for (const item of items) {
    if (typeof item === 'number') text.push(item);
    else {
      close();
      chunks.push(item);
    }
  }
  close();
  return new ModelInput(chunks);
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

function plainCall({ name, arguments: json }: ToolCall): unknown {
  try {
    return [name, JSON.parse(json)];
  } catch {
    return [name, json];
  }
}
