import type { Content, ContentPart, Message, TextPart } from './Message.js';
import { RendererError } from './RendererError.js';

/** Content as a list of parts; a string is one text part. */
export function partsOf(content: Content): readonly ContentPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** The text of a message, without its reasoning. */
export function textOf(message: Pick<Message, 'content'>): string {
  const { content } = message;
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** The reasoning of a message, joined; `''` when there is none. */
export function thinkingOf(message: Pick<Message, 'content'>): string {
  return partsOf(message.content)
    .map((part) => (part.type === 'thinking' ? part.thinking : ''))
    .join('');
}

/** True when a message carries a thinking part, even an empty one. */
export function hasThinking(message: Pick<Message, 'content'>): boolean {
  return typeof message.content !== 'string' && message.content.some((part) => part.type === 'thinking');
}

/** Content without its reasoning. */
export function withoutThinking(content: Content): Content {
  return typeof content === 'string' ? content : content.filter((part) => part.type !== 'thinking');
}

/** The one text of a message. Throws a {@link RendererError} naming the renderer on anything but text. */
export function onlyText(message: Pick<Message, 'content' | 'role'>, renderer: string): string {
  for (const part of partsOf(message.content)) {
    if (part.type !== 'text') {
      throw new RendererError(`${renderer} takes text only, and this ${message.role} message has a ${part.type} part`);
    }
  }
  return textOf(message);
}

/** Throws a {@link RendererError} if a message calls or declares tools, for families that would leave them out silently. */
export function withoutTools({ toolCalls = [], tools = [] }: Message, renderer: string): void {
  if (toolCalls.length > 0) throw new RendererError(`${renderer} has no way to write tool calls`);
  if (tools.length > 0) throw new RendererError(`${renderer} has no way to declare tools`);
}

/** Text and reasoning of a message as one string each. Throws a {@link RendererError} on images and audio. */
export function textAndThinking(message: Message, renderer: string): { text: string; thinking: string } {
  for (const part of partsOf(message.content)) {
    if (part.type !== 'text' && part.type !== 'thinking') {
      throw new RendererError(`${renderer} does not take ${part.type} parts`);
    }
  }
  return { text: textOf(message), thinking: thinkingOf(message) };
}

/** Trims visible content as a template's `content | trim` does, leaving reasoning and images alone. */
export function trimVisible(content: Content): Content {
  if (typeof content === 'string') return content.trim();
  const parts: ContentPart[] = [...content];
  const visible = parts.flatMap((part, index) => (part.type === 'thinking' ? [] : [index]));
  const strip = (indices: readonly number[], side: (text: string) => string): void => {
    for (const index of indices) {
      const part = parts[index];
      if (part?.type !== 'text') return;
      const trimmed: TextPart = { type: 'text', text: side(part.text) };
      parts[index] = trimmed;
      if (trimmed.text !== '') return;
    }
  };
  strip(visible, (text) => text.trimStart());
  strip([...visible].reverse(), (text) => text.trimEnd());
  return parts;
}
