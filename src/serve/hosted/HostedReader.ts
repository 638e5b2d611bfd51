import { statusError } from '../../client/connection/failure.js';
import type { Secrets } from '../../client/connection/Secrets.js';
import { APIResponseValidationError, type APIStatusError } from '../../client/errors.js';
import { ServerSentEventParser } from '../../support/http/ServerSentEventParser.js';
import { isRecord } from '../../support/isRecord.js';
import { parseJson } from '../../support/parseJson.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { ChatDelta, ChatReply, FinishReason } from '../completion/ChatRequest.js';

type Json = Readonly<Record<string, unknown>>;
interface Call {
  readonly id: string;
  readonly name: string;
  json: string;
}

const FINISH: Readonly<Record<string, FinishReason>> = { max_tokens: 'length', tool_use: 'tool_calls' };

/** The statuses of Anthropic's documentation. */
const STATUS_OF: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};

function eventIn(text: string): Json {
  const event = parseJson(text);
  if (isRecord(event)) return event;
  throw new APIResponseValidationError("the reply is not a stream of Anthropic's API: an event is not a JSON object");
}

/** Reads the events of Anthropic's messages as they come. */
export class HostedReader {
  readonly #events = new ServerSentEventParser();
  #text = '';
  #thinking = '';
  readonly #calls: Call[] = [];
  readonly #open = new Map<number, Call>();
  #reason: string | undefined;
  #stopText: string | undefined;
  #usage: Json = {};
  #ended = false;

  constructor(private readonly secrets: Secrets) {}

  /** What some more of the stream says. @throws APIStatusError for an error of the service, APIResponseValidationError for anything else */
  read(text: string): ChatDelta[] {
    return this.#events.push(text).flatMap(({ data }) => this.#take(eventIn(data)));
  }

  /** The whole reply. @throws APIResponseValidationError if the stream broke off */
  end(): ChatDelta[] {
    const last = this.read('\n\n');
    if (!this.#ended) throw new APIResponseValidationError('the stream of the reply broke off');
    const count = (name: string): number => (typeof this.#usage[name] === 'number' ? this.#usage[name] : 0);
    const cachedTokens = count('cache_read_input_tokens');
    const reply: ChatReply = {
      ...{ text: this.#text, thinking: this.#thinking, toolCalls: this.#calls.map(toolCallOf) },
      finish: FINISH[this.#reason ?? ''] ?? 'stop',
      ...{ stopText: this.#stopText, stopReason: this.#reason === 'max_tokens' ? 'length' : 'stop' },
      ...{
        tokens: new Int32Array(0),
        logprobs: undefined,
        topkLogprobs: undefined,
        told: 0,
        prompt: ModelInput.empty(),
      },
      // Anthropic's API counts cached tokens apart from the others.
      ...{ promptTokens: count('input_tokens') + cachedTokens, cachedTokens, sampledTokens: count('output_tokens') },
    };
    return [...last, { type: 'reply', reply }];
  }

  #take(event: Json): ChatDelta[] {
    const [index, delta] = [event['index'] as number, (event['delta'] ?? {}) as Json];
    switch (event['type']) {
      case 'message_start':
        this.#count((event['message'] as Json | undefined)?.['usage']);
        return [];
      case 'content_block_start': {
        const { type, id, name } = event['content_block'] as Json;
        if (type === 'tool_use') this.#open.set(index, { id: String(id), name: String(name), json: '' });
        return [];
      }
      case 'content_block_delta':
        return this.#grow(index, delta);
      case 'content_block_stop':
        return this.#close(index);
      case 'message_delta':
        this.#reason = (delta['stop_reason'] as string | null) ?? this.#reason;
        this.#stopText = (delta['stop_sequence'] as string | null) ?? undefined;
        this.#count(event['usage']);
        return [];
      case 'message_stop':
        this.#ended = true;
        return [];
      case 'error':
        throw this.#failure(event);
      default:
        return [];
    }
  }

  /** An error inside a stream, as if it had come before it. */
  #failure(event: Json): APIStatusError {
    const { type = '' } = (isRecord(event['error']) ? event['error'] : {}) as { type?: string };
    const body = new TextEncoder().encode(JSON.stringify(event));
    const response = this.secrets.redactResponse({ status: STATUS_OF[type] ?? 500, headers: {}, body });
    return statusError(response, 'POST /v1/messages', 0);
  }

  #grow(index: number, { type, text, thinking, partial_json: json }: Json): ChatDelta[] {
    if (type === 'text_delta' && typeof text === 'string') {
      this.#text += text;
      return [{ type: 'text', text }];
    }
    if (type === 'thinking_delta' && typeof thinking === 'string') {
      this.#thinking += thinking;
      return [{ type: 'thinking', thinking }];
    }
    const call = this.#open.get(index);
    if (type === 'input_json_delta' && call !== undefined) call.json += String(json);
    return [];
  }

  #close(index: number): ChatDelta[] {
    const call = this.#open.get(index);
    if (call === undefined) return [];
    this.#open.delete(index);
    this.#calls.push(call);
    return [{ type: 'tool-call', call: toolCallOf(call) }];
  }

  #count(usage: unknown): void {
    if (isRecord(usage)) this.#usage = { ...this.#usage, ...usage };
  }
}

const toolCallOf = ({ id, name, json }: Call) => ({ id, name, arguments: json === '' ? '{}' : json });
