import { messagesFrom } from '../../chat/renderers/openai.js';
import type { ToolSpec } from '../../chat/renderers/Message.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import type { JsonWish } from '../json/jsonOutput.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError } from '../http/GatewayError.js';

/** A chat completion as it was asked for. */
export interface ChatAsk {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly count: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly logprobs: boolean;
  readonly json: JsonWish | undefined;
}

/** Reads the body of `POST /v1/chat/completions`. @throws GatewayError naming the field that cannot be honoured */
export function readChatAsk(body: unknown, gateway: Gateway): ChatAsk {
  const fields = new Fields(body);
  const messages = messagesFrom(fields.any('messages'));
  if (messages.length === 0) throw new GatewayError(400, 'messages must not be empty', 'messages');
  const count = fields.integer('n', 1, 128) ?? 1;
  const maxTokens = fields.integer('max_completion_tokens', 1, Infinity) ?? fields.integer('max_tokens', 1, Infinity);
  fields.ignore('max_tokens');
  const limit = Math.floor(gateway.maxTokens / count);
  if (maxTokens !== undefined && maxTokens > limit) {
    throw new GatewayError(400, `max_tokens must be at most ${limit} here`, 'max_tokens');
  }
  const logprobs = fields.flag('logprobs') ?? false;
  const topLogprobs = fields.integer('top_logprobs', 0, 20) ?? 0;
  if (topLogprobs > 0 && !logprobs) throw fields.wrong('top_logprobs', 'needs logprobs: true');
  const options = fields.object('stream_options');
  const ask: ChatAsk = {
    model: fields.text('model'),
    count,
    stream: fields.flag('stream') ?? false,
    includeUsage: options?.flag('include_usage') ?? false,
    logprobs,
    json: readFormat(fields),
    request: {
      messages,
      tools: readTools(fields),
      stop: fields.texts('stop', 4) ?? [],
      topLogprobs,
      samplingParams: {
        maxTokens: maxTokens ?? limit,
        ...readSampling(fields),
      },
    },
  };
  options?.ignore('include_obfuscation');
  options?.done();
  refuseTheRest(fields);
  return ask;
}

/** Temperature, top-p and seed; what is absent keeps the service's defaults. */
export function readSampling(fields: Fields): { temperature?: number; topP?: number; topK?: number; seed?: number } {
  const temperature = fields.number('temperature', 0, 2);
  const topP = fields.number('top_p', 0, 1);
  const topK = fields.integer('top_k', -1, 1_000_000);
  const seed = fields.integer('seed', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined || topK === 0 ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
  };
}

function readTools(fields: Fields): readonly ToolSpec[] {
  const tools = (fields.list('tools') ?? []).map((item, index) => {
    const tool = new Fields(item, `tools[${index}]`);
    if (tool.text('type') !== 'function') throw tool.wrong('type', 'must be function');
    return readFunction(tool.object('function') ?? fail(tool.wrong('function', 'is missing')));
  });
  const choice = fields.any('tool_choice');
  if (choice === undefined || choice === 'auto') return tools;
  if (choice === 'none') return [];
  throw fields.wrong('tool_choice', 'must be auto or none: a call cannot be forced through this protocol');
}

/** A function as OpenAI declares it. */
export function readFunction(declared: Fields): ToolSpec {
  const name = declared.text('name') ?? fail(declared.wrong('name', 'is missing'));
  const parameters = (declared.any('parameters') ?? { type: 'object', properties: {} }) as ToolSpec['parameters'];
  return { name, description: declared.text('description') ?? '', parameters };
}

function fail(error: Error): never {
  throw error;
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

const isZero = (value: unknown): boolean => value === 0;
const isEmpty = (value: unknown): boolean => Object.keys(value as object).length === 0;

function refuseTheRest(fields: Fields): void {
  fields.only('frequency_penalty', isZero);
  fields.only('presence_penalty', isZero);
  fields.only('logit_bias', isEmpty);
  fields.only('modalities', (value) => Array.isArray(value) && value.every((item) => item === 'text'));
  fields.only('store', (value) => value === false);
  fields.only('parallel_tool_calls', (value) => value === true);
  fields.ignore('user', 'metadata', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention');
  fields.done();
}
