import { textOf } from '../../chat/renderers/core/content.js';
import type { Message, ToolSpec } from '../../chat/renderers/core/Message.js';
import { withoutUndefined } from '../../wire/record.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError } from '../http/GatewayError.js';
import type { JsonWish } from '../json/jsonOutput.js';
import { readMessage, textIn } from './blocks.js';

/** A message as it was asked for. */
export interface MessagesAsk {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly stream: boolean;
  readonly json: JsonWish | undefined;
  readonly warnings: readonly string[];
}

/** Reads the body of `POST /v1/messages`. @throws GatewayError naming the field that cannot be honoured */
export function readMessagesAsk(body: unknown, gateway: Gateway): MessagesAsk {
  const fields = new Fields(body, '', { strict: gateway.strict, warnings: [] });
  refuseThreads(fields);
  const maxTokens = fields.atMost('max_tokens', 1, gateway.maxTokens);
  if (maxTokens === undefined) throw fields.wrong('max_tokens', 'is missing');
  const said = fields.objects('messages').flatMap(readMessage);
  if (said.length === 0) throw fields.wrong('messages', 'must not be empty');
  const system = fields.any('system');
  const temperature = fields.number('temperature', 0, 1);
  const topP = fields.number('top_p', 0, 1);
  const topK = fields.integer('top_k', 0, 1_000_000);
  const { messages, prefill } = openTurn(said);
  const ask: MessagesAsk = {
    model: fields.text('model'),
    stream: fields.flag('stream') ?? false,
    json: readFormat(fields),
    warnings: fields.warnings,
    request: {
      messages: system === undefined ? messages : [{ role: 'system', content: textIn(fields, 'system') }, ...messages],
      ...(prefill === undefined ? {} : { prefill }),
      tools: readTools(fields),
      stop: fields.texts('stop_sequences', 16) ?? [],
      samplingParams: withoutUndefined({ maxTokens, temperature, topP, topK: topK === 0 ? undefined : topK }),
    },
  };
  fields.hint('thinking', (value) => (value as { type?: unknown }).type === 'disabled');
  fields.hint('context_management');
  fields.object('output_config')?.hint('effort');
  fields.only('mcp_servers', (value) => Array.isArray(value) && value.length === 0);
  fields.ignore('metadata', 'service_tier', 'cache_control', 'betas', 'inference_geo', 'container');
  fields.done();
  return ask;
}

/** Conversations are not kept. The SDK's tool runner sends them whole when it is told so in these words. */
function refuseThreads(fields: Fields): void {
  if (fields.any('thread') === undefined) return;
  throw new GatewayError(400, 'thread is not supported by this gateway: send the whole conversation', 'thread', {
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  });
}

/** A conversation that ends with the assistant's words is a turn that the model continues. */
function openTurn(said: readonly Message[]): { readonly messages: readonly Message[]; readonly prefill?: string } {
  const last = said.at(-1)!;
  if (last.role !== 'assistant' || last.toolCalls !== undefined) return { messages: said };
  return { messages: said.slice(0, -1), prefill: textOf(last) };
}

function readTools(fields: Fields): readonly ToolSpec[] {
  const tools = fields.objects('tools').map((tool) => {
    const name = tool.text('name');
    const parameters = tool.any('input_schema');
    if (name === undefined) throw tool.wrong('name', 'is missing');
    if (typeof parameters !== 'object')
      throw tool.wrong('input_schema', 'must be an object: only custom tools are known');
    return { name, description: tool.text('description') ?? '', parameters: parameters as ToolSpec['parameters'] };
  });
  const choice = fields.object('tool_choice');
  const type = choice?.text('type') ?? 'auto';
  choice?.hint('disable_parallel_tool_use', (value) => value === false);
  if (type === 'none') return [];
  if (type === 'auto') return tools;
  fields.unmet('tool_choice', 'must be of type auto or none: a call cannot be forced through this protocol');
  const wanted = tools.filter(({ name }) => name === choice?.text('name'));
  return wanted.length === 0 ? tools : wanted;
}

/** `output_config.format`, or `output_format` as it was called before. */
function readFormat(fields: Fields): JsonWish | undefined {
  const format = fields.object('output_config')?.object('format') ?? fields.object('output_format');
  if (format === undefined) return undefined;
  const schema = format.any('schema');
  if (format.text('type') !== 'json_schema' || typeof schema !== 'object') {
    throw format.wrong('type', 'must be json_schema, with a schema');
  }
  return { schema: schema as object };
}
