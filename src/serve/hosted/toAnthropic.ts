import { textOf } from '../../chat/renderers/core/content.js';
import type { ContentPart, Message } from '../../chat/renderers/core/Message.js';
import { RendererError } from '../../chat/renderers/core/RendererError.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import { inputOf } from '../anthropic/blocks.js';

type Block = Readonly<Record<string, unknown>>;

/** Most tokens where a request names no limit: Anthropic's API asks for one. */
const MOST_TOKENS = 4096;

/** What an inference endpoint can be told that a sampler cannot. */
export interface HostedWishes {
  /** How much to think: an effort of the AI SDK, `none` for not at all. Default: the model's own. */
  readonly reasoning?: string | undefined;
  /** Whether a tool must be called, and which. Default: the model decides. */
  readonly toolChoice?: { readonly type: string; readonly toolName?: string } | undefined;
}

/** Efforts of the AI SDK that Anthropic's API calls otherwise. */
const EFFORTS: Readonly<Record<string, string>> = { minimal: 'low', xhigh: 'max' };

/** A request in the shape of Anthropic's messages. @throws RendererError for a part that has no place there */
export function toAnthropic(request: ChatRequest, model: string, wishes: HostedWishes = {}): object {
  const { messages, tools = [], stop = [], samplingParams = {}, mostTokens = MOST_TOKENS } = request;
  const { maxTokens = mostTokens, temperature, topP, topK } = samplingParams;
  const system = messages.filter(isSystem).map(textOf).join('\n\n');
  return {
    model,
    max_tokens: maxTokens,
    stream: true,
    ...(system === '' ? {} : { system }),
    messages: turnsOf(messages.filter((message) => !isSystem(message))),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })) }),
    ...(stop.length === 0 ? {} : { stop_sequences: stop }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(topK === undefined || topK < 1 ? {} : { top_k: topK }),
    ...thinkingOf(wishes),
    ...(tools.length === 0 ? {} : choiceOf(wishes)),
  };
}

function thinkingOf({ reasoning = 'provider-default' }: HostedWishes): Block {
  if (reasoning === 'provider-default') return {};
  if (reasoning === 'none') return { thinking: { type: 'disabled' } };
  return { output_config: { effort: EFFORTS[reasoning] ?? reasoning } };
}

function choiceOf({ toolChoice }: HostedWishes): Block {
  if (toolChoice?.type === 'required') return { tool_choice: { type: 'any' } };
  return toolChoice?.type === 'tool' ? { tool_choice: { type: 'tool', name: toolChoice.toolName } } : {};
}

const isSystem = ({ role }: Message): boolean => role === 'system' || role === 'developer';

/** Turns of the user and the assistant by turns: results of tools are the user's. */
function turnsOf(messages: readonly Message[]): readonly { readonly role: string; readonly content: Block[] }[] {
  const turns: { readonly role: string; readonly content: Block[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocksOf(message));
    else turns.push({ role, content: blocksOf(message) });
  }
  return turns;
}

function blocksOf(message: Message): Block[] {
  const { role, content, toolCalls = [], toolCallId } = message;
  if (role === 'tool') return [{ type: 'tool_result', tool_use_id: toolCallId ?? '', content: textOf(message) }];
  const parts: readonly ContentPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const calls = toolCalls.map(({ id, name, arguments: json }) => ({
    type: 'tool_use',
    id: id ?? name,
    name,
    input: inputOf(json),
  }));
  return [...parts.flatMap(blockOf), ...calls];
}

function blockOf(part: ContentPart): Block[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ ...part }];
  if (part.type === 'thinking') return [{ ...part, signature: '' }];
  if (part.type !== 'image' || part.data === undefined)
    throw new RendererError(`a ${part.type} part through Anthropic's API`);
  const data = Buffer.from(part.data).toString('base64');
  return [{ type: 'image', source: { type: 'base64', media_type: `image/${part.format}`, data } }];
}
