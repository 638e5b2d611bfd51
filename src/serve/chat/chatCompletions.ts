import { concat, concatMap, defer, from, map, Observable, of, tap } from 'rxjs';
import type { ChatModel, ChatReply } from '../completion/ChatRequest.js';
import { askForJson, untilJson } from '../json/jsonOutput.js';
import { completeChat, streamChat } from '../completion/streamChat.js';
import { event, type Answer, type Endpoint, type Gateway } from '../http/Endpoint.js';
import { readChatAsk, type ChatAsk } from './chatRequest.js';
import { logprobsOf } from './logprobs.js';

/** `POST /v1/chat/completions`. */
export const chatCompletions: Endpoint = (body, gateway) =>
  // By hand instead of defer, from and concatMap: every answer passes here.
  new Observable((subscriber) => {
    const ask = readChatAsk(body, gateway);
    const answer = (model: ChatModel): void => {
      if (subscriber.closed) return;
      const answers = ask.stream ? of(streamed(model, ask, gateway)) : whole(model, ask, gateway);
      answers.subscribe(subscriber);
    };
    gateway
      .find(ask.model)
      .then(answer)
      .catch((error: unknown) => subscriber.error(error));
  });

/** Every reply that was asked for; with a schema, each is sampled until it fits. */
export function repliesOf(
  model: ChatModel,
  { request, count, json }: Pick<ChatAsk, 'request' | 'count' | 'json'>,
  gateway: Gateway,
): Observable<readonly ChatReply[]> {
  if (json === undefined) return completeChat(model, request, count, (reply) => gateway.onReply(request, reply));
  const asked = askForJson(request, json);
  const one = completeChat(model, asked, 1, (reply) => gateway.onReply(asked, reply)).pipe(map(([reply]) => reply!));
  const all: ChatReply[] = [];
  const each = Array.from({ length: count }, () =>
    untilJson(one, json, gateway.jsonRetries).pipe(tap((r) => all.push(r))),
  );
  return concat(...each, of(undefined)).pipe(
    concatMap((reply) => (reply === undefined ? of<readonly ChatReply[]>(all) : of())),
  );
}

function whole(model: ChatModel, ask: ChatAsk, gateway: Gateway): Observable<Answer> {
  return repliesOf(model, ask, gateway).pipe(
    map((replies) => ({
      json: {
        ...envelope('chat.completion', ask, gateway),
        choices: replies.map((reply, index) => ({
          index,
          message: messageOf(reply),
          logprobs: ask.logprobs ? { content: logprobsOf(reply, model.renderer.tokenizer), refusal: null } : null,
          finish_reason: reply.finish,
        })),
        usage: usageOf(replies),
      },
    })),
  );
}

const envelope = (object: string, { model }: ChatAsk, gateway: Gateway): object => ({
  id: `chatcmpl-${gateway.newId()}`,
  object,
  created: Math.floor(gateway.nowMs() / 1000),
  model: model ?? gateway.mainName,
});

const messageOf = ({ text, thinking, toolCalls }: ChatReply): object => ({
  role: 'assistant',
  content: text === '' && toolCalls.length > 0 ? null : text,
  refusal: null,
  ...(thinking === '' ? {} : { reasoning_content: thinking }),
  ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(callOf) }),
});

const callOf = ({ id, name, arguments: json }: ChatReply['toolCalls'][number]): object => ({
  id,
  type: 'function',
  function: { name, arguments: json },
});

/** The prompt is read once, however many replies were sampled from it. */
function usageOf(replies: readonly ChatReply[]): object {
  const prompt = replies[0]?.promptTokens ?? 0;
  const sampled = replies.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return {
    prompt_tokens: prompt,
    completion_tokens: sampled,
    total_tokens: prompt + sampled,
    prompt_tokens_details: { cached_tokens: replies[0]?.cachedTokens ?? 0 },
  };
}

/** Streams as they are sampled where that is possible: one choice, and no schema that must be checked first. */
function streamed(model: ChatModel, ask: ChatAsk, gateway: Gateway): Answer {
  const shared = envelope('chat.completion.chunk', ask, gateway);
  const usage = ask.includeUsage ? { usage: null } : {};
  const chunk = (index: number, delta: object, finish: string | null = null, logprobs: object | null = null): string =>
    event({ ...shared, choices: [{ index, delta, logprobs, finish_reason: finish }], ...usage });
  const replies: ChatReply[] = [];
  const last = (index: number, reply: ChatReply): string => {
    replies.push(reply);
    const content = ask.logprobs ? { content: logprobsOf(reply, model.renderer.tokenizer), refusal: null } : null;
    return chunk(index, {}, reply.finish, content);
  };
  const end = defer(() => {
    const total = ask.includeUsage ? [event({ ...shared, choices: [], usage: usageOf(replies) })] : [];
    return from([...total, event('[DONE]')]);
  });
  if (ask.count > 1 || ask.json !== undefined) {
    const all = repliesOf(model, ask, gateway).pipe(
      concatMap((found) =>
        from(found.flatMap((reply, index) => [chunk(index, withIndices(messageOf(reply))), last(index, reply)])),
      ),
    );
    return { events: concat(all, end) };
  }
  let calls = 0;
  const { pieceTokens } = gateway;
  const request = pieceTokens === undefined ? ask.request : { ...ask.request, pieceTokens };
  const deltas = streamChat(model, request).pipe(
    map((delta) => {
      switch (delta.type) {
        case 'text':
          return chunk(0, { content: delta.text });
        case 'thinking':
          return chunk(0, { reasoning_content: delta.thinking });
        case 'tool-call':
          return chunk(0, { tool_calls: [{ index: calls++, ...callOf(delta.call) }] });
        case 'reply':
          gateway.onReply(ask.request, delta.reply);
          return last(0, delta.reply);
      }
    }),
  );
  return { events: concat(of(chunk(0, { role: 'assistant', content: '' })), deltas, end) };
}

/** A message as the one delta of its choice: calls are numbered there. */
const withIndices = (message: object & { tool_calls?: readonly object[] }): object => ({
  ...message,
  ...(message.tool_calls === undefined
    ? {}
    : { tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) }),
});
