import { concat, concatMap, defer, from, map, type Observable, of } from 'rxjs';
import type { ChatDelta, ChatModel, ChatReply } from '../completion/ChatRequest.js';
import { streamChat } from '../completion/streamChat.js';
import { event, type Answer, type Endpoint, type Gateway } from '../http/Endpoint.js';
import type { GatewayError } from '../http/GatewayError.js';
import { repliesOf } from '../chat/chatCompletions.js';
import { readMessagesAsk, type MessagesAsk } from './messagesRequest.js';

/** `POST /v1/messages`. */
export const messages: Endpoint = (body, gateway) =>
  defer(() => {
    const ask = readMessagesAsk(body, gateway);
    return from(gateway.find(ask.model)).pipe(
      concatMap((model): Observable<Answer> =>
        ask.stream ? of(streamed(model, ask, gateway)) : whole(model, ask, gateway),
      ),
    );
  });

/** How Anthropic's API writes an error. */
export function anthropicRefusal({ status, message }: GatewayError): object {
  const types: Readonly<Record<number, string>> = {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
  };
  return {
    type: 'error',
    error: { type: types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'), message },
  };
}

function whole(model: ChatModel, ask: MessagesAsk, gateway: Gateway): Observable<Answer> {
  return repliesOf(model, { request: ask.request, count: 1, json: undefined }, gateway).pipe(
    map(([reply]) => ({
      json: { ...envelope(ask, gateway), content: blocksOf(reply!), ...ending(reply!), usage: usageOf(reply!) },
    })),
  );
}

const envelope = ({ model }: MessagesAsk, gateway: Gateway): object => ({
  id: `msg_${gateway.newId()}`,
  type: 'message',
  role: 'assistant',
  model: model ?? gateway.mainName,
});

const blocksOf = ({ thinking, text, toolCalls }: ChatReply): object[] => [
  ...(thinking === '' ? [] : [{ type: 'thinking', thinking, signature: '' }]),
  ...(text === '' ? [] : [{ type: 'text', text }]),
  ...toolCalls.map(({ id, name, arguments: json }) => ({ type: 'tool_use', id, name, input: inputOf(json) })),
];

/** Arguments that are no JSON are the model's mistake: the caller sees them as they are. */
function inputOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return { unparsed: json };
  }
}

function ending({ finish, stopText }: ChatReply): object {
  const reasons = {
    stop: stopText === undefined ? 'end_turn' : 'stop_sequence',
    length: 'max_tokens',
    tool_calls: 'tool_use',
  };
  return { stop_reason: reasons[finish], stop_sequence: stopText ?? null };
}

const usageOf = ({ promptTokens, cachedTokens, tokens }: ChatReply): object => ({
  input_tokens: promptTokens - cachedTokens,
  cache_read_input_tokens: cachedTokens,
  cache_creation_input_tokens: 0,
  output_tokens: tokens.length,
});

function streamed(model: ChatModel, ask: MessagesAsk, gateway: Gateway): Answer {
  const send = (data: { readonly type: string } & Record<string, unknown>): string => event(data, data.type);
  const nothing = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const begin = { ...envelope(ask, gateway), content: [], stop_reason: null, stop_sequence: null, usage: nothing };
  const { pieceTokens } = gateway;
  const request = pieceTokens === undefined ? ask.request : { ...ask.request, pieceTokens };
  const events = defer(() => {
    let index = -1;
    let open: 'text' | 'thinking' | undefined;
    const start = (block: object): string =>
      send({ type: 'content_block_start', index: ++index, content_block: block });
    const delta = (change: object): string => send({ type: 'content_block_delta', index, delta: change });
    const close = (): string[] => {
      if (open === undefined) return [];
      open = undefined;
      return [send({ type: 'content_block_stop', index })];
    };
    const say = (kind: 'text' | 'thinking', more: string): string[] => {
      const opening =
        open === kind
          ? []
          : [
              ...close(),
              start(kind === 'text' ? { type: kind, text: '' } : { type: kind, thinking: '', signature: '' }),
            ];
      open = kind;
      return [
        ...opening,
        delta(kind === 'text' ? { type: 'text_delta', text: more } : { type: 'thinking_delta', thinking: more }),
      ];
    };
    const read = (part: ChatDelta): string[] => {
      switch (part.type) {
        case 'text':
          return say('text', part.text);
        case 'thinking':
          return say('thinking', part.thinking);
        case 'tool-call': {
          const { id, name, arguments: json } = part.call;
          return [
            ...close(),
            start({ type: 'tool_use', id, name, input: {} }),
            delta({ type: 'input_json_delta', partial_json: json }),
            send({ type: 'content_block_stop', index }),
          ];
        }
        case 'reply':
          gateway.onReply(ask.request, part.reply);
          return [
            ...close(),
            send({ type: 'message_delta', delta: ending(part.reply), usage: usageOf(part.reply) }),
            send({ type: 'message_stop' }),
          ];
      }
    };
    return concat(
      of(send({ type: 'message_start', message: begin })),
      streamChat(model, request).pipe(concatMap((part) => from(read(part)))),
    );
  });
  return { events };
}
