import { concatMap, defer, from, map, type Observable, of } from 'rxjs';
import { tokenUsage, type ChatModel, type ChatReply } from '../completion/ChatRequest.js';
import { repliesOf, replyDeltas } from '../completion/repliesOf.js';
import type { Answer, Endpoint, Gateway } from '../http/Endpoint.js';
import { itemsOf, type Item } from './items.js';
import { readResponsesAsk, type ResponsesAsk } from './responsesRequest.js';
import { ResponseWriter } from './ResponseWriter.js';

/** `POST /v1/responses`. Items are kept for a while, responses are not: every request brings its whole conversation. */
export const responses: Endpoint = (body, gateway) =>
  defer(() => {
    const ask = readResponsesAsk(body, gateway);
    const { warnings } = ask;
    return from(gateway.find(ask.model)).pipe(
      concatMap((model): Observable<Answer> => {
        if (ask.stream) return of({ events: streamed(model, ask, gateway), warnings });
        return repliesOf(model, { ...ask, count: 1 }, gateway).pipe(
          map(([reply]) => {
            const output = itemsOf(reply!, ask.reasoning, gateway);
            return { json: finished(envelope(ask, gateway), reply!, kept(output, ask, gateway)), warnings };
          }),
        );
      }),
    );
  });

type Envelope = Readonly<Record<string, unknown>>;

const envelope = ({ model, echo, store }: ResponsesAsk, gateway: Gateway): Envelope => ({
  id: `resp_${gateway.newId()}`,
  object: 'response',
  created_at: Math.floor(gateway.nowMs() / 1000),
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  model: model ?? gateway.mainName,
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  store,
  truncation: 'disabled',
  ...echo,
});

function kept(output: readonly Item[], { store }: ResponsesAsk, gateway: Gateway): readonly Item[] {
  if (store) gateway.items.add(output);
  return output;
}

function finished(shared: Envelope, reply: ChatReply, output: readonly Item[]): Envelope {
  const cut = reply.finish === 'length';
  const { prompt, cached, sampled } = tokenUsage([reply]);
  return {
    ...shared,
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    output,
    usage: {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: sampled,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt + sampled,
    },
  };
}

function streamed(model: ChatModel, ask: ResponsesAsk, gateway: Gateway): Observable<string> {
  return defer(() => {
    const shared = envelope(ask, gateway);
    const writer = new ResponseWriter(ask.reasoning, gateway);
    return replyDeltas(model, ask, gateway).pipe(
      concatMap((delta) => {
        const opening = writer.begin(shared);
        if (delta.type !== 'reply') return [...opening, ...writer.write(delta)];
        const rest = writer.close();
        const response = finished(shared, delta.reply, kept(writer.output, ask, gateway));
        return [...opening, ...rest, writer.end(response)];
      }),
    );
  });
}
