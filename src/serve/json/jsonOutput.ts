import { concatMap, defer, forkJoin, from, type Observable, of, throwError } from 'rxjs';
import { GatewayError } from '../http/GatewayError.js';
import type { ChatReply, ChatRequest } from '../completion/ChatRequest.js';

/** JSON as an answer: any object, or one that fits a schema. */
export interface JsonWish {
  readonly schema: object | undefined;
}

/** What is wrong with JSON, by its schema; undefined if nothing is. */
export type CheckJson = (schema: object, json: string) => Promise<string | undefined>;

/** The wish in words, in the system message: sampling itself cannot be constrained through this protocol. */
export function askForJson(request: ChatRequest, { schema }: JsonWish): ChatRequest {
  const wish =
    schema === undefined
      ? 'Answer with JSON only.'
      : `Answer with JSON only, matching this JSON schema:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = request.messages;
  const messages =
    first?.role === 'system' && typeof first.content === 'string'
      ? [{ ...first, content: `${first.content}\n\n${wish}` }, ...rest]
      : [{ role: 'system', content: wish }, ...request.messages];
  return { ...request, messages };
}

export interface JsonSampling {
  /** Samples `count` replies, with another seed for every attempt. */
  readonly sample: (count: number, attempt: number) => Observable<readonly ChatReply[]>;
  readonly retries: number;
  readonly check: CheckJson;
}

/**
 * Samples `count` replies, and each that is not the JSON that was asked for again, `retries` more times at most. A reply
 * that calls tools, or was cut off by its own limit, is handed on as it is. JSON in a fence is taken out of it.
 *
 * @returns fails with a GatewayError 422 that says what did not fit the last time
 */
export function untilJson(
  count: number,
  { schema }: JsonWish,
  options: JsonSampling,
): Observable<readonly ChatReply[]> {
  const { sample, retries, check } = options;
  let attempts = 0;
  const fitting = (reply: ChatReply, left: number): Observable<ChatReply> =>
    from(judge(reply, schema, check)).pipe(
      concatMap(({ wrong, text }) => {
        if (wrong === undefined) return of({ ...reply, text });
        if (left > 0)
          return sample(1, ++attempts).pipe(concatMap(([next]) => fitting(afterDiscarding(reply, next!), left - 1)));
        return throwError(
          () => new GatewayError(422, `the model's answer is not the JSON that was asked for: ${wrong}`),
        );
      }),
    );
  // A schema that cannot be used is refused before anything is sampled.
  return defer(() => (schema === undefined ? of(undefined) : check(schema, 'null'))).pipe(
    concatMap(() => sample(count, 0)),
    concatMap((replies) => forkJoin(replies.map((reply) => fitting(reply, retries)))),
  );
}

interface Judgement {
  readonly wrong: string | undefined;
  readonly text: string;
}

async function judge(reply: ChatReply, schema: object | undefined, check: CheckJson): Promise<Judgement> {
  const { text } = reply;
  if (reply.finish !== 'stop') return { wrong: undefined, text };
  const json = unfenced(text);
  try {
    JSON.parse(json);
  } catch (error) {
    return { wrong: (error as Error).message, text };
  }
  return { wrong: schema === undefined ? undefined : await check(schema, json), text: json };
}

/** Models like to put JSON between fences, with or without words around it. */
function unfenced(text: string): string {
  const start = text.indexOf('```');
  const end = text.lastIndexOf('```');
  if (start < 0 || end <= start) return text;
  return text.slice(text.indexOf('\n', start) + 1 || start + 3, end).trim();
}

function afterDiscarding(before: ChatReply, reply: ChatReply): ChatReply {
  const { promptTokens = 0, sampledTokens = 0 } = before.discarded ?? {};
  return {
    ...reply,
    discarded: {
      promptTokens: promptTokens + before.promptTokens,
      sampledTokens: sampledTokens + before.tokens.length,
    },
  };
}
