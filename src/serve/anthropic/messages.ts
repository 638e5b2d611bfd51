import { concatMap, defer, from, map, type Observable, of } from 'rxjs';
import { type ChatModel, type ChatReply, tokenUsage, chatPrompt } from '../completion/ChatRequest.js';
import { repliesOf, replyDeltas } from '../completion/repliesOf.js';
import type { Answer, Endpoint, Gateway } from '../http/Endpoint.js';
import type { GatewayError } from '../http/GatewayError.js';
import { blocksOf } from './blocks.js';
import { MessageWriter } from './MessageWriter.js';
import { readMessagesAsk, type MessagesAsk } from './messagesRequest.js';

/** `POST /v1/messages`. */
export const messages: Endpoint = (body, gateway) =>
  defer(() => {
    const ask = readMessagesAsk(body, gateway);
    const { warnings } = ask;
    return from(gateway.find(ask.model)).pipe(
      concatMap((model): Observable<Answer> => {
        if (ask.stream) return of({ events: streamed(model, ask, gateway), warnings });
        return repliesOf(model, { ...ask, count: 1 }, gateway).pipe(
          map(([reply]) => ({
            json: { ...envelope(ask, gateway), content: blocksOf(reply!), ...ending(reply!), usage: usageOf(reply!) },
            warnings,
          })),
        );
      }),
    );
  });

/** How Anthropic's API writes an error. */
export function anthropicRefusal({ status, message, extra: { details } }: GatewayError): object {
  const types: Readonly<Record<number, string>> = {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    503: 'overloaded_error',
    504: 'timeout_error',
  };
  const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return { type: 'error', error: { type, message, ...(details === undefined ? {} : { details }) } };
}

const envelope = ({ model }: MessagesAsk, gateway: Gateway): object => ({
  id: `msg_${gateway.newId()}`,
  type: 'message',
  role: 'assistant',
  model: model ?? gateway.mainName,
});

function ending({ finish, stopText }: ChatReply): object {
  const reasons = {
    stop: stopText === undefined ? 'end_turn' : 'stop_sequence',
    length: 'max_tokens',
    tool_calls: 'tool_use',
  };
  return { stop_reason: reasons[finish], stop_sequence: stopText ?? null };
}

function usageOf(reply: ChatReply): object {
  const { prompt, cached, sampled } = tokenUsage([reply]);
  return {
    input_tokens: prompt - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens: sampled,
  };
}

const NOTHING_YET = {
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
};

function streamed(model: ChatModel, ask: MessagesAsk, gateway: Gateway): Observable<string> {
  return defer(() => {
    const writer = new MessageWriter();
    const begin = { ...envelope(ask, gateway), ...NOTHING_YET };
    return replyDeltas(model, ask, gateway).pipe(
      concatMap((delta) => {
        // With the first delta and not before it: until then a failure has its own status.
        const opening = writer.begin(begin);
        if (delta.type !== 'reply') return [...opening, ...writer.write(delta)];
        return [...opening, ...writer.end(ending(delta.reply), usageOf(delta.reply))];
      }),
    );
  });
}

/** `POST /v1/messages/count_tokens`: how long the prompt of a message would be. Nothing is sampled. */
export const countTokens: Endpoint = (body, gateway) =>
  defer(() => {
    // The same request, but for how much may be sampled.
    const ask = readMessagesAsk({ max_tokens: 1, ...(body as object) }, gateway);
    return from(gateway.find(ask.model)).pipe(
      concatMap((model) =>
        of({ json: { input_tokens: chatPrompt(model, ask.request).length }, warnings: ask.warnings }),
      ),
    );
  });
