import type { Message, ToolSpec } from '../../chat/renderers/core/Message.js';
import { ignoreCommon, readFunction, readSampling, readToolChoice } from '../chat/openAiFields.js';
import type { ChatRequest } from '../completion/ChatRequest.js';
import type { JsonWish } from '../json/jsonOutput.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError } from '../http/GatewayError.js';
import { readItems, type ReasoningForm } from './items.js';

/** A response as it was asked for. */
export interface ResponsesAsk {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly stream: boolean;
  readonly json: JsonWish | undefined;
  readonly reasoning: ReasoningForm;
  /** Whether items may be named instead of sent back. */
  readonly store: boolean;
  /** What the answer repeats of the request. */
  readonly echo: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
}

/** Reads the body of `POST /v1/responses`. @throws GatewayError naming the field that cannot be honoured */
export function readResponsesAsk(body: unknown, gateway: Gateway): ResponsesAsk {
  const fields = new Fields(body, '', { strict: gateway.strict, warnings: [] });
  const input = fields.any('input');
  const said: Message[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : readItems(fields.objects('input'), gateway.items);
  if (said.length === 0) throw new GatewayError(400, 'input must not be empty', 'input');
  const instructions = fields.text('instructions');
  const maxTokens = fields.atMost('max_output_tokens', 1, gateway.maxTokens);
  const sampling = readSampling(fields);
  const reasoning = fields.object('reasoning');
  const include = fields.texts('include', 100) ?? [];
  const ask: ResponsesAsk = {
    model: fields.text('model'),
    stream: fields.flag('stream') ?? false,
    json: readFormat(fields),
    store: fields.flag('store') ?? true,
    reasoning: {
      summary: (reasoning?.any('summary') ?? reasoning?.any('generate_summary')) !== undefined,
      encrypted: include.includes('reasoning.encrypted_content'),
    },
    warnings: fields.warnings,
    echo: {
      instructions: instructions ?? null,
      metadata: fields.any('metadata') ?? {},
      tools: fields.any('tools') ?? [],
      tool_choice: fields.any('tool_choice') ?? 'auto',
      text: fields.any('text') ?? { format: { type: 'text' } },
      reasoning: fields.any('reasoning') ?? { effort: null, summary: null },
      max_output_tokens: maxTokens ?? null,
      temperature: sampling.temperature ?? 1,
      top_p: sampling.topP ?? 1,
      user: fields.any('user') ?? null,
    },
    request: {
      messages: instructions === undefined ? said : [{ role: 'system', content: instructions }, ...said],
      tools: readTools(fields),
      mostTokens: gateway.maxTokens,
      samplingParams: { ...(maxTokens === undefined ? {} : { maxTokens }), ...sampling },
    },
  };
  reasoning?.hint('effort');
  readHints(fields);
  return ask;
}

function readTools(fields: Fields): readonly ToolSpec[] {
  const tools = fields.objects('tools').map((tool) => {
    if (tool.text('type') !== 'function') throw tool.wrong('type', 'must be function');
    return readFunction(tool);
  });
  return readToolChoice(fields, tools);
}

function readFormat(fields: Fields): JsonWish | undefined {
  const text = fields.object('text');
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

/** What changes nothing here, and what would change the answer and cannot be honoured. */
function readHints(fields: Fields): void {
  fields.only('background', (value) => value === false);
  fields.hint('parallel_tool_calls', (value) => value === true);
  fields.hint('truncation', (value) => value === 'disabled');
  fields.hint('top_logprobs', (value) => value === 0);
  fields.hint('max_tool_calls');
  fields.object('text')?.hint('verbosity');
  ignoreCommon(fields, 'stream_options', 'client_metadata');
  fields.done();
}
