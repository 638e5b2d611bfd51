import type { ContentPart, Message, ToolCall, ToolSpec } from '../../chat/renderers/core/Message.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError } from '../http/GatewayError.js';

/** A message as it was asked for. */
export interface MessagesAsk {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly stream: boolean;
}

/** Reads the body of `POST /v1/messages`. @throws GatewayError naming the field that cannot be honoured */
export function readMessagesAsk(body: unknown, gateway: Gateway): MessagesAsk {
  const fields = new Fields(body);
  const maxTokens = fields.integer('max_tokens', 1, gateway.maxTokens);
  if (maxTokens === undefined) throw fields.wrong('max_tokens', 'is missing');
  const messages = (fields.list('messages') ?? []).flatMap((item, index) => readMessage(item, `messages[${index}]`));
  if (messages.length === 0) throw fields.wrong('messages', 'must not be empty');
  const system = fields.any('system');
  const temperature = fields.number('temperature', 0, 1);
  const topP = fields.number('top_p', 0, 1);
  const topK = fields.integer('top_k', 0, 1_000_000);
  const ask: MessagesAsk = {
    model: fields.text('model'),
    stream: fields.flag('stream') ?? false,
    request: {
      messages: system === undefined ? messages : [{ role: 'system', content: systemText(system) }, ...messages],
      tools: readTools(fields),
      stop: fields.texts('stop_sequences', 16) ?? [],
      samplingParams: {
        maxTokens,
        ...(temperature === undefined ? {} : { temperature }),
        ...(topP === undefined ? {} : { topP }),
        ...(topK === undefined || topK === 0 ? {} : { topK }),
      },
    },
  };
  fields.only('thinking', (value) => (value as { type?: unknown }).type === 'disabled');
  fields.ignore('metadata', 'service_tier');
  fields.done();
  return ask;
}

function systemText(system: unknown): string {
  if (typeof system === 'string') return system;
  if (!Array.isArray(system)) throw new GatewayError(400, 'system must be a string or a list of text blocks', 'system');
  return system.map((item, index) => textBlock(new Fields(item, `system[${index}]`))).join('');
}

function textBlock(block: Fields): string {
  if (block.text('type') !== 'text') throw block.wrong('type', 'must be text here');
  return block.text('text') ?? '';
}

function readTools(fields: Fields): readonly ToolSpec[] {
  const tools = (fields.list('tools') ?? []).map((item, index) => {
    const tool = new Fields(item, `tools[${index}]`);
    const name = tool.text('name');
    const parameters = tool.any('input_schema');
    if (name === undefined) throw tool.wrong('name', 'is missing');
    if (typeof parameters !== 'object')
      throw tool.wrong('input_schema', 'must be an object: only custom tools are known');
    return { name, description: tool.text('description') ?? '', parameters: parameters as ToolSpec['parameters'] };
  });
  const choice = fields.object('tool_choice');
  const type = choice?.text('type') ?? 'auto';
  if (type === 'none') return [];
  if (type !== 'auto') throw fields.wrong('tool_choice.type', 'must be auto or none: a call cannot be forced');
  return tools;
}

/** One message; results of tools in it are messages of their own, before what the user says. */
function readMessage(item: unknown, where: string): Message[] {
  const fields = new Fields(item, where);
  const role = fields.text('role');
  if (role !== 'user' && role !== 'assistant') throw fields.wrong('role', 'must be user or assistant');
  const given = fields.any('content');
  if (typeof given === 'string') return [{ role, content: given }];
  const results: Message[] = [];
  const calls: ToolCall[] = [];
  const content: ContentPart[] = [];
  (fields.list('content') ?? []).forEach((raw, index) => {
    const block = new Fields(raw, `${where}.content[${index}]`);
    const type = block.text('type');
    if (type === 'text') content.push({ type: 'text', text: block.text('text') ?? '' });
    else if (type === 'thinking') content.push({ type: 'thinking', thinking: block.text('thinking') ?? '' });
    else if (type === 'image') content.push(readImage(block));
    else if (type === 'tool_use') calls.push(readCall(block));
    else if (type === 'tool_result') results.push(readResult(block));
    else throw block.wrong('type', `${type ?? 'undefined'} is not supported by this gateway`);
  });
  const plain = content.every((part) => part.type === 'text');
  const said: Message = {
    role,
    content: plain ? content.map((part) => (part.type === 'text' ? part.text : '')).join('') : content,
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
  };
  return content.length === 0 && calls.length === 0 ? results : [...results, said];
}

function readCall(block: Fields): ToolCall {
  const name = block.text('name');
  if (name === undefined) throw block.wrong('name', 'is missing');
  const id = block.text('id');
  return { name, arguments: JSON.stringify(block.any('input') ?? {}), ...(id === undefined ? {} : { id }) };
}

function readResult(block: Fields): Message {
  const toolCallId = block.text('tool_use_id');
  if (toolCallId === undefined) throw block.wrong('tool_use_id', 'is missing');
  const content = block.any('content') ?? '';
  const text =
    typeof content === 'string'
      ? content
      : (content as unknown[])
          .map((item, index) => textBlock(new Fields(item, `${block.path('content')}[${index}]`)))
          .join('');
  return { role: 'tool', toolCallId, content: text };
}

function readImage(block: Fields): ContentPart {
  const source = block.object('source');
  const format = { 'image/png': 'png', 'image/jpeg': 'jpeg' }[source?.text('media_type') ?? ''];
  if (source?.text('type') !== 'base64' || format === undefined) {
    throw block.wrong('source', 'must be a PNG or JPEG in base64');
  }
  return { type: 'image', format: format as 'png' | 'jpeg', data: Buffer.from(source.text('data') ?? '', 'base64') };
}
