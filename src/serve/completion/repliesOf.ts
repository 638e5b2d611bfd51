import { concatMap, type Observable, tap } from 'rxjs';
import type { Gateway } from '../http/Endpoint.js';
import { askForJson, untilJson, type JsonWish } from '../json/jsonOutput.js';
import type { ChatDelta, ChatModel, ChatReply, ChatRequest } from './ChatRequest.js';
import { completeChat, streamChat } from './streamChat.js';

/** Far enough from the seeds of the choices that are sampled together. */
const SEED_STEP = 1_000_003;

/** Every reply that was asked for; where JSON is wanted, each is sampled until it fits. */
export function repliesOf(
  model: ChatModel,
  {
    request,
    count,
    json,
  }: { readonly request: ChatRequest; readonly count: number; readonly json: JsonWish | undefined },
  gateway: Gateway,
): Observable<readonly ChatReply[]> {
  if (json === undefined) return completeChat(model, request, count, (reply) => gateway.onReply(request, reply));
  const asked = askForJson(request, json);
  return untilJson(count, json, {
    retries: gateway.jsonRetries,
    check: gateway.checkJson,
    sample: (some, attempt) => {
      const again = attempt === 0 ? asked : withNextSeed(asked, attempt);
      return completeChat(model, again, some);
    },
  }).pipe(tap((replies) => replies.forEach((reply) => gateway.onReply(asked, reply))));
}

/** One reply as it arrives; where JSON is wanted it is checked first, and then told as a whole. */
export function replyDeltas(
  model: ChatModel,
  { request, json }: { readonly request: ChatRequest; readonly json: JsonWish | undefined },
  gateway: Gateway,
): Observable<ChatDelta> {
  if (json !== undefined) {
    return repliesOf(model, { request, count: 1, json }, gateway).pipe(concatMap(([reply]) => wholeDeltas(reply!)));
  }
  const { pieceTokens } = gateway;
  return streamChat(model, pieceTokens === undefined ? request : { ...request, pieceTokens }).pipe(
    tap((delta) => {
      if (delta.type === 'reply') gateway.onReply(request, delta.reply);
    }),
  );
}

function wholeDeltas(reply: ChatReply): ChatDelta[] {
  const { thinking, text, toolCalls } = reply;
  return [
    ...(thinking === '' ? [] : [{ type: 'thinking', thinking } as const]),
    ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ...toolCalls.map((call) => ({ type: 'tool-call', call }) as const),
    { type: 'reply', reply },
  ];
}

/** The same seed would repeat the same mistake. */
function withNextSeed(request: ChatRequest, attempt: number): ChatRequest {
  const { samplingParams: params } = request;
  if (params?.seed === undefined) return request;
  return { ...request, samplingParams: { ...params, seed: params.seed + attempt * SEED_STEP } };
}
