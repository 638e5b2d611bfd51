import type { ContentPart, Message, ToolSpec } from '../../chat/renderers/Message.js';
import { messagesFrom } from '../../chat/renderers/openai.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import type { JsonWish } from '../json/jsonOutput.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError } from '../http/GatewayError.js';
import { readFunction, readSampling } from '../chat/chatRequest.js';

/** A response as it was asked for. */
export interface ResponsesAsk {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly stream: boolean;
  readonly json: JsonWish | undefined;
}

/** Reads the body of `POST /v1/responses`. @throws GatewayError naming the field that cannot be honoured */
export function readResponsesAsk(body: unknown, gateway: Gateway): ResponsesAsk {
  const fields = new Fields(body);
  const input = fields.any('input');
  const said: Message[] =
    typeof input === 'string'
      ? [{ role: 'user', content: input }]
      : (fields.list('input') ?? []).map((item, index) => readItem(item, `input[${index}]`));
  if (said.length === 0) throw new GatewayError(400, 'input must not be empty', 'input');
  const instructions = fields.text('instructions');
  const ask: ResponsesAsk = {
    model: fields.text('model'),
    stream: fields.flag('stream') ?? false,
    json: readFormat(fields),
    request: {
      messages: joinCalls(instructions === undefined ? said : [{ role: 'system', content: instructions }, ...said]),
      tools: readTools(fields),
      samplingParams: {
        maxTokens: fields.integer('max_output_tokens', 1, gateway.maxTokens) ?? gateway.maxTokens,
        ...readSampling(fields),
      },
    },
  };
  fields.only('store', (value) => value === false);
  fields.only('background', (value) => value === false);
  fields.only('parallel_tool_calls', (value) => value === true);
  fields.only('truncation', (value) => value === 'disabled');
  fields.only('include', (value) => Array.isArray(value) && value.length === 0);
  fields.ignore('user', 'metadata', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'stream_options');
  fields.done();
  return ask;
}

/** A call and the text before it are one turn of the assistant; here each was an item of its own. */
function joinCalls(messages: readonly Message[]): Message[] {
  return messages.reduce<Message[]>((joined, message) => {
    const last = joined.at(-1);
    if (last?.role !== 'assistant' || message.role !== 'assistant' || message.toolCalls === undefined) {
      return [...joined, message];
    }
    return [...joined.slice(0, -1), { ...last, toolCalls: [...(last.toolCalls ?? []), ...message.toolCalls] }];
  }, []);
}

function readItem(item: unknown, where: string): Message {
  const fields = new Fields(item, where);
  const type = fields.text('type') ?? 'message';
  if (type === 'function_call') {
    const name = fields.text('name');
    const id = fields.text('call_id');
    if (name === undefined) throw fields.wrong('name', 'is missing');
    const call = { name, arguments: fields.text('arguments') ?? '{}', ...(id === undefined ? {} : { id }) };
    return { role: 'assistant', content: '', toolCalls: [call] };
  }
  if (type === 'function_call_output') {
    const toolCallId = fields.text('call_id');
    if (toolCallId === undefined) throw fields.wrong('call_id', 'is missing');
    return { role: 'tool', toolCallId, content: fields.text('output') ?? '' };
  }
  if (type !== 'message') throw fields.wrong('type', `${type} is not supported by this gateway`);
  const content = fields.any('content');
  const parts =
    typeof content === 'string' ? content : (fields.list('content') ?? []).map((part) => readPart(part, where));
  const [message] = messagesFrom([{ role: fields.text('role') ?? 'user', content: parts }]);
  return message!;
}

/** Parts are named after their side here; they are text and images all the same. */
function readPart(part: unknown, where: string): ContentPart | object {
  const fields = new Fields(part, `${where}.content`);
  const type = fields.text('type');
  if (type === 'input_text' || type === 'output_text') return { type: 'text', text: fields.text('text') ?? '' };
  if (type === 'input_image') return { type: 'image_url', image_url: fields.any('image_url') };
  throw fields.wrong('type', `${type ?? 'undefined'} is not supported by this gateway`);
}

function readTools(fields: Fields): readonly ToolSpec[] {
  const tools = (fields.list('tools') ?? []).map((item, index) => {
    const tool = new Fields(item, `tools[${index}]`);
    if (tool.text('type') !== 'function') throw tool.wrong('type', 'must be function');
    return readFunction(tool);
  });
  const choice = fields.any('tool_choice') ?? 'auto';
  if (choice === 'none') return [];
  if (choice !== 'auto') throw fields.wrong('tool_choice', 'must be auto or none: a call cannot be forced');
  return tools;
}

function readFormat(fields: Fields): JsonWish | undefined {
  const text = fields.object('text');
  text?.ignore('verbosity');
  const format = text?.object('format');
  const type = format?.text('type') ?? 'text';
  if (type === 'text') return undefined;
  if (type === 'json_object') return { schema: undefined };
  const schema = format?.any('schema');
  if (type !== 'json_schema' || typeof schema !== 'object') {
    throw fields.wrong('text.format', 'must be text, json_object, or json_schema with a schema');
  }
  return { schema: schema as object };
}
