import type { RecordedCall } from '../../sources/fromRecorded.js';
import { ServerSentEventParser } from '../../support/http/ServerSentEventParser.js';
import { isRecord } from '../../support/isRecord.js';
import { parseJson } from '../../support/parseJson.js';

type Json = Record<string, unknown>;

/** The events of a stream that was collected; events that are not JSON, such as the end mark, are left out. */
function eventsIn(text: string): Json[] {
  return new ServerSentEventParser().push(`${text}\n\n`).flatMap(({ data }) => {
    const event = parseJson(data);
    return isRecord(event) ? [{ ...event }] : [];
  });
}

/**
 * The whole reply that a stream of events delivered, as the API would have sent it at once.
 *
 * @throws Error if the stream ended before its reply did, or with an error: half a reply is nothing to learn from
 */
export function joinStream(api: RecordedCall['api'], text: string): unknown {
  const events = eventsIn(text);
  const failed = events.find(({ error }) => error != null);
  if (failed !== undefined) throw new Error(`the upstream failed: ${errorText(failed['error'])}`);
  if (!events.some((event) => ENDS[api](event))) throw new Error('the stream of the reply broke off');
  if (api === 'responses') return events.findLast(({ response }) => response !== undefined)?.['response'];
  return api === 'messages' ? joinBlocks(events) : joinChunks(events);
}

const chunkEnds = ({ choices }: Json): boolean =>
  Array.isArray(choices) && choices.some((choice: Json) => choice['finish_reason'] != null);

/** The event with which the reply of a stream is complete. */
const ENDS: Readonly<Record<RecordedCall['api'], (event: Json) => boolean>> = {
  chat: chunkEnds,
  completions: chunkEnds,
  messages: ({ type }) => type === 'message_stop',
  responses: ({ type }) => type === 'response.completed' || type === 'response.incomplete',
  'ai-sdk': () => true,
};

const errorText = (error: unknown): string =>
  isRecord(error) && typeof error['message'] === 'string' ? error['message'] : JSON.stringify(error);

/** Chunks of chat completions and of completions. Only the first choice is kept. */
function joinChunks(events: readonly Json[]): Json {
  const calls = new Map<number, { id?: unknown; name: string; arguments: string }>();
  const [said, reasoned, texts]: [string[], string[], string[]] = [[], [], []];
  let finish: unknown;
  for (const { choices } of events) {
    const choice = (Array.isArray(choices) ? choices : []).find((each: Json) => (each['index'] ?? 0) === 0) as
      | Json
      | undefined;
    finish = choice?.['finish_reason'] ?? finish;
    if (typeof choice?.['text'] === 'string') texts.push(choice['text']);
    const delta = (choice?.['delta'] ?? {}) as Json;
    if (typeof delta['content'] === 'string') said.push(delta['content']);
    const reasoning = delta['reasoning_content'] ?? delta['reasoning'];
    if (typeof reasoning === 'string') reasoned.push(reasoning);
    for (const part of (delta['tool_calls'] ?? []) as { index: number; id?: unknown; function?: Json }[]) {
      const call = calls.get(part.index) ?? { name: '', arguments: '' };
      const { name = '', arguments: json = '' } = (part.function ?? {}) as { name?: string; arguments?: string };
      calls.set(part.index, { id: part.id ?? call.id, name: call.name + name, arguments: call.arguments + json });
    }
  }
  const toolCalls = [...calls.values()].map(({ id, ...called }) => ({ id, type: 'function', function: called }));
  const message = {
    role: 'assistant',
    content: said.join(''),
    ...(reasoned.length === 0 ? {} : { reasoning_content: reasoned.join('') }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
  const choice = { index: 0, message, text: texts.join(''), finish_reason: finish };
  return { id: events[0]?.['id'], usage: events.findLast(({ usage }) => usage != null)?.['usage'], choices: [choice] };
}

/** Events of Anthropic's messages. */
function joinBlocks(events: readonly Json[]): Json {
  const blocks: Json[] = [];
  let message: Json = {};
  for (const event of events) {
    const [index, delta] = [event['index'] as number, (event['delta'] ?? {}) as Json];
    if (event['type'] === 'message_start') message = event['message'] as Json;
    if (event['type'] === 'content_block_start') blocks[index] = { ...(event['content_block'] as Json) };
    if (event['type'] === 'message_delta')
      message = { ...message, ...delta, usage: { ...(message['usage'] as object), ...(event['usage'] as object) } };
    const block = blocks[index];
    if (event['type'] !== 'content_block_delta' || block === undefined) continue;
    for (const [field, from] of GROWS)
      if (typeof delta[from] === 'string') block[field] = `${(block[field] as string | undefined) ?? ''}${delta[from]}`;
  }
  return { ...message, content: blocks.filter(Boolean).map(withInput) };
}

/** Which field of a block grows by which field of its deltas. */
const GROWS = [
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['json', 'partial_json'],
] as const;

function withInput({ json, ...block }: Json): Json {
  return typeof json !== 'string' || json === '' ? block : { ...block, input: JSON.parse(json) as unknown };
}
