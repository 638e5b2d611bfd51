import type { Message } from './Message.js';

/** Where a message stands in its conversation. */
export interface RenderContext {
  readonly index: number;
  readonly messages: readonly Message[];
  readonly isLast: boolean;
  readonly previous: Message | undefined;
  readonly next: Message | undefined;
  /** Index of the last user message, −1 without one. */
  readonly lastUserIndex: number;
}

/** The context of one message; `index` may be one past the end, for a message that is yet to be written. */
export function contextAt(messages: readonly Message[], index: number): RenderContext {
  return {
    index,
    messages,
    isLast: index >= messages.length - 1,
    previous: messages[index - 1],
    next: messages[index + 1],
    lastUserIndex: messages.findLastIndex((message) => message.role === 'user'),
  };
}
