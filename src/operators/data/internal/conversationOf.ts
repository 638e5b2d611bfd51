import type { Message, ToolSpec } from '../../../chat/renderers/core/Message.js';
import { type Conversation, toConversation } from '../../../chat/data/toConversation.js';

/** A row of no known form. */
export class NotAConversation extends Error {}

/** A row as a conversation: as it is where a renderer takes it so, else translated. */
export function conversationOf(row: unknown): Conversation {
  const { messages = row, tools } = (Array.isArray(row) ? {} : (row ?? {})) as Partial<Conversation>;
  if (Array.isArray(messages) && messages.length > 0 && messages.every(isMessage) && areTools(tools)) {
    return { messages: messages as readonly Message[], ...(tools === undefined ? {} : { tools }) };
  }
  try {
    return toConversation(row);
  } catch (cause) {
    throw new NotAConversation((cause as Error).message, { cause });
  }
}

/** Whether tools are as a renderer takes them; OpenAI wraps each into a function. */
const areTools = (tools: unknown): boolean =>
  tools === undefined ||
  (Array.isArray(tools) && tools.every((tool) => typeof (tool as ToolSpec | null)?.name === 'string'));

const FOREIGN = ['tool_calls', 'tool_call_id', 'reasoning_content', 'reasoning', 'thinking', 'function_call'];

/** Whether a renderer takes it as it is; OpenAI's names want translating first. */
function isMessage(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || FOREIGN.some((field) => field in value)) return false;
  const { role, content } = value as { readonly role?: unknown; readonly content?: unknown };
  if (role === 'assistant' && typeof content === 'string' && content.startsWith('<think>')) return false;
  return typeof role === 'string' && (typeof content === 'string' || isOwnContent(content));
}

/** Parts as the renderers take them: an image that is still base64, or that another format names, is not. */
const isOwnContent = (content: unknown): boolean =>
  Array.isArray(content) &&
  content.every((part: unknown) => {
    const { type, data, location } = (part ?? {}) as Record<string, unknown>;
    if (type === 'image') return data instanceof Uint8Array || typeof location === 'string';
    return type === 'text' || type === 'thinking' || type === 'audio';
  });
