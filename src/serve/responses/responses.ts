import { concat, concatMap, defer, from, map, type Observable, of } from 'rxjs';
import type { ChatDelta, ChatModel, ChatReply } from '../completion/ChatRequest.js';
import { streamChat } from '../completion/streamChat.js';
import { event, type Answer, type Endpoint, type Gateway } from '../http/Endpoint.js';
import { repliesOf } from '../chat/chatCompletions.js';
import { readResponsesAsk, type ResponsesAsk } from './responsesRequest.js';

/** `POST /v1/responses`. Nothing is stored: every request brings its whole conversation. */
export const responses: Endpoint = (body, gateway) =>
  defer(() => {
    const ask = readResponsesAsk(body, gateway);
    return from(gateway.find(ask.model)).pipe(
      concatMap((model): Observable<Answer> => {
        if (ask.stream) return of({ events: streamed(model, ask, gateway) });
        return repliesOf(model, { request: ask.request, count: 1, json: ask.json }, gateway).pipe(
          map(([reply]) => ({ json: finished(envelope(ask, gateway), reply!, itemsOf(reply!, gateway)) })),
        );
      }),
    );
  });

type Envelope = Readonly<Record<string, unknown>>;
type Item = Readonly<Record<string, unknown>>;

const envelope = ({ model, request }: ResponsesAsk, gateway: Gateway): Envelope => ({
  id: `resp_${gateway.newId()}`,
  object: 'response',
  created_at: Math.floor(gateway.nowMs() / 1000),
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model: model ?? gateway.mainName,
  output: [],
  parallel_tool_calls: true,
  store: false,
  temperature: request.samplingParams?.temperature ?? 1,
  top_p: request.samplingParams?.topP ?? 1,
  tool_choice: 'auto',
  tools: [],
});

function finished(shared: Envelope, reply: ChatReply, output: readonly Item[]): Envelope {
  const cut = reply.finish === 'length';
  return {
    ...shared,
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    output,
    usage: {
      input_tokens: reply.promptTokens,
      input_tokens_details: { cached_tokens: reply.cachedTokens },
      output_tokens: reply.tokens.length,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: reply.promptTokens + reply.tokens.length,
    },
  };
}

const textPart = (text: string): object => ({ type: 'output_text', text, annotations: [], logprobs: [] });

const messageItem = (id: string, text: string, status = 'completed'): Item => ({
  type: 'message',
  id,
  status,
  role: 'assistant',
  content: status === 'completed' ? [textPart(text)] : [],
});

const reasoningItem = (id: string, thinking: string): Item => ({
  type: 'reasoning',
  id,
  summary: [],
  content: [{ type: 'reasoning_text', text: thinking }],
});

const callItem = ({ id, name, arguments: json }: ChatReply['toolCalls'][number], gateway: Gateway): Item => ({
  type: 'function_call',
  id: `fc_${gateway.newId()}`,
  call_id: id,
  name,
  arguments: json,
  status: 'completed',
});

function itemsOf({ thinking, text, toolCalls }: ChatReply, gateway: Gateway): Item[] {
  return [
    ...(thinking === '' ? [] : [reasoningItem(`rs_${gateway.newId()}`, thinking)]),
    ...(text === '' && toolCalls.length > 0 ? [] : [messageItem(`msg_${gateway.newId()}`, text)]),
    ...toolCalls.map((call) => callItem(call, gateway)),
  ];
}

/** With a schema the answer is checked first, and then sent as one delta. */
function deltasOf(model: ChatModel, ask: ResponsesAsk, gateway: Gateway): Observable<ChatDelta> {
  const { request, json } = ask;
  if (json === undefined) {
    const { pieceTokens } = gateway;
    return streamChat(model, pieceTokens === undefined ? request : { ...request, pieceTokens });
  }
  return repliesOf(model, { request, count: 1, json }, gateway).pipe(
    concatMap(([reply]) => of<ChatDelta[]>({ type: 'text', text: reply!.text }, { type: 'reply', reply: reply! })),
  );
}

function streamed(model: ChatModel, ask: ResponsesAsk, gateway: Gateway): Observable<string> {
  return defer(() => {
    const shared = envelope(ask, gateway);
    let number = 0;
    const send = (type: string, rest: object): string => event({ type, sequence_number: number++, ...rest }, type);
    const output: Item[] = [];
    let open: { readonly id: string; text: string } | undefined;
    const added = (item: Item): string => send('response.output_item.added', { output_index: output.length, item });
    const done = (item: Item): string => {
      const sent = send('response.output_item.done', { output_index: output.length, item });
      output.push(item);
      return sent;
    };
    const place = (): object => ({ item_id: open!.id, output_index: output.length, content_index: 0 });
    const close = (): string[] => {
      if (open === undefined) return [];
      const { id, text } = open;
      const parts = [
        send('response.output_text.done', { ...place(), text, logprobs: [] }),
        send('response.content_part.done', { ...place(), part: textPart(text) }),
        done(messageItem(id, text)),
      ];
      open = undefined;
      return parts;
    };
    const say = (text: string): string[] => {
      const parts: string[] = [];
      if (open === undefined) {
        open = { id: `msg_${gateway.newId()}`, text: '' };
        parts.push(added(messageItem(open.id, '', 'in_progress')));
        parts.push(send('response.content_part.added', { ...place(), part: textPart('') }));
      }
      open.text += text;
      return [...parts, send('response.output_text.delta', { ...place(), delta: text, logprobs: [] })];
    };
    let thinking = '';
    const closeThinking = (): string[] => {
      if (thinking === '') return [];
      const item = reasoningItem(`rs_${gateway.newId()}`, thinking);
      thinking = '';
      return [added({ ...item, content: [] }), done(item)];
    };
    const read = (delta: ChatDelta): string[] => {
      switch (delta.type) {
        case 'thinking':
          thinking += delta.thinking;
          return [];
        case 'text':
          return [...closeThinking(), ...say(delta.text)];
        case 'tool-call': {
          const before = [...closeThinking(), ...close()];
          const item = callItem(delta.call, gateway);
          const at = { item_id: item['id'], output_index: output.length };
          return [
            ...before,
            added({ ...item, arguments: '', status: 'in_progress' }),
            send('response.function_call_arguments.delta', { ...at, delta: delta.call.arguments }),
            send('response.function_call_arguments.done', {
              ...at,
              arguments: delta.call.arguments,
              name: delta.call.name,
            }),
            done(item),
          ];
        }
        case 'reply': {
          if (ask.json === undefined) gateway.onReply(ask.request, delta.reply);
          const before = [...closeThinking(), ...close()];
          const response = finished(shared, delta.reply, output);
          const type = response['status'] === 'completed' ? 'response.completed' : 'response.incomplete';
          return [...before, send(type, { response })];
        }
      }
    };
    return concat(
      of(send('response.created', { response: shared }), send('response.in_progress', { response: shared })),
      deltasOf(model, ask, gateway).pipe(concatMap((delta) => from(read(delta)))),
    );
  });
}
