import { messagesFrom } from '../../chat/renderers/core/openai.js';
import type { ToolSpec } from '../../chat/renderers/core/Message.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import type { JsonWish } from '../json/jsonOutput.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError } from '../http/GatewayError.js';
import {
  hintPenalties,
  ignoreCommon,
  mostWithLogprobs,
  readFunction,
  readSampling,
  readToolChoice,
} from './openAiFields.js';

/** A chat completion as it was asked for. */
export interface ChatAsk {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly count: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly logprobs: boolean;
  /** Whether the answer has the ids of its tokens and of the prompt's, as vLLM writes them. */
  readonly tokenIds: boolean;
  readonly json: JsonWish | undefined;
  readonly warnings: readonly string[];
}

/** Reads the body of `POST /v1/chat/completions`. @throws GatewayError naming the field that cannot be honoured */
export function readChatAsk(body: unknown, gateway: Gateway): ChatAsk {
  const fields = new Fields(body, '', { strict: gateway.strict, warnings: [] });
  const messages = messagesFrom(fields.list('messages'));
  if (messages.length === 0) throw new GatewayError(400, 'messages must not be empty', 'messages');
  const count = fields.integer('n', 1, 128) ?? 1;
  const logprobs = fields.flag('logprobs') ?? false;
  const topLogprobs = fields.integer('top_logprobs', 0, 20) ?? 0;
  if (topLogprobs > 0 && !logprobs) throw fields.wrong('top_logprobs', 'needs logprobs: true');
  const mostTokens = Math.floor((logprobs ? mostWithLogprobs(topLogprobs, gateway) : gateway.maxTokens) / count);
  const maxTokens = fields.atMost('max_completion_tokens', 1, mostTokens) ?? fields.atMost('max_tokens', 1, mostTokens);
  fields.ignore('max_tokens');
  const options = fields.object('stream_options');
  const ask: ChatAsk = {
    model: fields.text('model'),
    count,
    stream: fields.flag('stream') ?? false,
    includeUsage: options?.flag('include_usage') ?? false,
    logprobs,
    tokenIds: fields.flag('return_token_ids') ?? false,
    json: readFormat(fields),
    warnings: fields.warnings,
    request: {
      messages,
      tools: readTools(fields),
      stop: fields.texts('stop', 4) ?? [],
      wantsTokens: logprobs,
      topLogprobs,
      mostTokens,
      samplingParams: { ...(maxTokens === undefined ? {} : { maxTokens }), ...readSampling(fields) },
    },
  };
  readHints(fields);
  return ask;
}

function readTools(fields: Fields): readonly ToolSpec[] {
  const tools = fields.objects('tools').map((tool) => {
    if (tool.text('type') !== 'function') throw tool.wrong('type', 'must be function');
    const declared = tool.object('function');
    if (declared === undefined) throw tool.wrong('function', 'is missing');
    return readFunction(declared);
  });
  return readToolChoice(fields, tools);
}

function readFormat(fields: Fields): JsonWish | undefined {
  const format = fields.object('response_format');
  const type = format?.text('type');
  if (format === undefined || type === 'text') return undefined;
  if (type === 'json_object') return { schema: undefined };
  if (type !== 'json_schema') throw format.wrong('type', 'must be text, json_object or json_schema');
  const schema = format.object('json_schema')?.any('schema');
  if (typeof schema !== 'object') throw format.wrong('json_schema.schema', 'must be an object');
  return { schema: schema as object };
}

/** What changes nothing here, and what would change the answer and cannot be honoured. */
function readHints(fields: Fields): void {
  hintPenalties(fields);
  fields.hint('parallel_tool_calls', (value) => value === true);
  fields.hint('reasoning_effort');
  fields.hint('reasoning');
  fields.hint('verbosity');
  fields.hint('store', (value) => value === false);
  fields.hint('prediction');
  fields.only('modalities', (value) => Array.isArray(value) && value.every((item) => item === 'text'));
  fields.only('functions', (value) => Array.isArray(value) && value.length === 0);
  fields.only('web_search_options', () => false);
  fields.object('stream_options')?.ignore('include_obfuscation');
  ignoreCommon(fields, 'return_tokens_as_token_ids');
  fields.done();
}
