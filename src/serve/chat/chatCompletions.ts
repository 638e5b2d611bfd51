import { concat, concatMap, defer, from, map, Observable, of } from 'rxjs';
import { type ChatModel, type ChatReply, type SampledToken, tokenUsage } from '../completion/ChatRequest.js';
import { repliesOf, replyDeltas } from '../completion/repliesOf.js';
import { event, type Answer, type Endpoint, type Gateway } from '../http/Endpoint.js';
import { readChatAsk, type ChatAsk } from './chatRequest.js';
import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import { remembering, sampledTokens } from '../completion/TokenCursor.js';

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

function whole(model: ChatModel, ask: ChatAsk, gateway: Gateway): Observable<Answer> {
  return repliesOf(model, ask, gateway).pipe(
    map((replies) => ({
      warnings: ask.warnings,
      json: {
        ...envelope('chat.completion', ask, gateway),
        choices: replies.map((reply, index) => ({
          index,
          message: messageOf(reply),
          // With ids, one row for each of them: a trainer matches both.
          logprobs: ask.logprobs
            ? { content: logprobsOf(reply, model.renderer.tokenizer, ask.tokenIds), refusal: null }
            : null,
          finish_reason: reply.finish,
          ...(ask.tokenIds ? { token_ids: [...reply.tokens] } : {}),
        })),
        usage: usageOf(replies),
        ...(ask.tokenIds ? { prompt_token_ids: [...replies[0]!.prompt.toInts()] } : {}),
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

function usageOf(replies: readonly ChatReply[]): object {
  const { prompt, cached, sampled } = tokenUsage(replies);
  return {
    prompt_tokens: prompt,
    completion_tokens: sampled,
    total_tokens: prompt + sampled,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** Streams as they are sampled where that is possible: one choice, and no schema that must be checked first. */
function streamed(model: ChatModel, ask: ChatAsk, gateway: Gateway): Answer {
  const { warnings } = ask;
  const { tokenizer } = model.renderer;
  const shared = envelope('chat.completion.chunk', ask, gateway);
  const usage = ask.includeUsage ? { usage: null } : {};
  const chunk = (index: number, delta: object, rest: object = {}): string =>
    event({ ...shared, choices: [{ index, delta, logprobs: null, finish_reason: null, ...rest }], ...usage });
  const rowsOf = (content: object[] | null): object => ({ logprobs: { content, refusal: null } });
  const logprobs = (tokens: readonly SampledToken[] | undefined): object =>
    ask.logprobs && tokens !== undefined ? rowsOf(logprobRows(tokens, tokenizer)) : {};
  const replies: ChatReply[] = [];
  const last = (index: number, reply: ChatReply): string => {
    replies.push(reply);
    const ids = ask.tokenIds ? { token_ids: [...reply.tokens] } : {};
    return chunk(index, {}, { finish_reason: reply.finish, ...ids });
  };
  const end = defer(() => {
    const total = ask.includeUsage ? [event({ ...shared, choices: [], usage: usageOf(replies) })] : [];
    return from([...total, event('[DONE]')]);
  });
  if (ask.count > 1 || ask.json !== undefined) {
    const all = repliesOf(model, ask, gateway).pipe(
      concatMap((found) =>
        from(
          found.flatMap((reply, index) => [
            chunk(index, withIndices(messageOf(reply)), ask.logprobs ? rowsOf(logprobsOf(reply, tokenizer)) : {}),
            last(index, reply),
          ]),
        ),
      ),
    );
    return { events: concat(all, end), warnings };
  }
  const deltas = defer(() => {
    let calls = 0;
    let begun = false;
    // With the first delta and not before it: until then a failure has its own status.
    const begin = (): string[] => {
      if (begun) return [];
      begun = true;
      return [chunk(0, { role: 'assistant', content: '' })];
    };
    return replyDeltas(model, ask, gateway).pipe(
      concatMap((delta) => {
        const opening = begin();
        switch (delta.type) {
          case 'text':
            return [...opening, chunk(0, { content: delta.text }, logprobs(delta.tokens))];
          case 'thinking':
            return [...opening, chunk(0, { reasoning_content: delta.thinking }, logprobs(delta.tokens))];
          case 'tool-call':
            return [...opening, chunk(0, { tool_calls: [{ index: calls++, ...callOf(delta.call) }] })];
          case 'reply':
            return [...opening, last(0, delta.reply)];
        }
      }),
    );
  });
  return { events: concat(deltas, end), warnings };
}

/** A message as the one delta of its choice: calls are numbered there. */
const withIndices = (message: object & { tool_calls?: readonly object[] }): object => ({
  ...message,
  ...(message.tool_calls === undefined
    ? {}
    : { tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) }),
});

/** Logprobs as OpenAI writes them, a row per token. */
function logprobRows(tokens: readonly SampledToken[], tokenizer: Tokenizer): object[] {
  const spelling = remembering((token) => ({
    token: tokenizer.decode([token]),
    bytes: [...tokenizer.decodeBytes([token])],
  }));
  const entry = (id: number, logprob: number): object => {
    const { token, bytes } = spelling(id);
    return { token, logprob, bytes };
  };
  return tokens.map(({ token, logprob, top }) => ({
    ...entry(token, logprob),
    top_logprobs: top.map(([id, value]) => entry(id, value)),
  }));
}

/** Logprobs of what a reply tells, or of every sampled token; null if the service returned none. */
const logprobsOf = (reply: ChatReply, tokenizer: Tokenizer, everyToken = false): object[] | null =>
  reply.logprobs === undefined
    ? null
    : logprobRows(sampledTokens(reply).slice(0, everyToken ? undefined : reply.told), tokenizer);
