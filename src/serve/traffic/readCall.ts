import type { Message } from '../../chat/renderers/core/Message.js';
import type { RecordedCall } from '../../sources/fromRecorded.js';
import { isRecord } from '../../support/isRecord.js';
import { readMessage, textIn } from '../anthropic/blocks.js';
import { Fields } from '../http/Fields.js';
import { ItemStore, readItems } from '../responses/items.js';

type Json = Readonly<Record<string, unknown>>;
type Asked = Pick<RecordedCall, 'model' | 'messages' | 'tools' | 'params'>;
type Said = Pick<RecordedCall, 'replyId' | 'reply' | 'finish' | 'usage'>;

/** The APIs whose calls are recorded, by path. */
export const RECORDED_PATHS: ReadonlyMap<string, Exclude<RecordedCall['api'], 'ai-sdk'>> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/messages', 'messages'],
  ['/v1/responses', 'responses'],
  ['/v1/completions', 'completions'],
]);

const PARAMS = [
  'temperature',
  'top_p',
  'top_k',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'seed',
  'stop',
];

/** What was asked, whichever API it came through. @throws Error for a body that cannot be read */
export function readAsked(api: RecordedCall['api'], body: unknown): Asked {
  if (!isRecord(body)) throw new Error('the body is not an object');
  const { model, tools } = body;
  const params = Object.fromEntries(PARAMS.flatMap((name) => (body[name] == null ? [] : [[name, body[name]]])));
  return {
    ...(typeof model === 'string' ? { model } : {}),
    messages: messagesIn(api, body),
    ...(Array.isArray(tools) && tools.length > 0 ? { tools: tools.flatMap(toolOf) } : {}),
    ...(Object.keys(params).length === 0 ? {} : { params }),
  };
}

function messagesIn(api: RecordedCall['api'], body: Json): readonly unknown[] {
  if (api === 'chat') return Array.isArray(body['messages']) ? body['messages'] : [];
  if (api === 'completions')
    return typeof body['prompt'] === 'string' ? [{ role: 'user', content: body['prompt'] }] : [];
  const fields = new Fields(body, '', { strict: false, warnings: [] });
  const system = api === 'messages' ? textIn(fields, 'system') : (fields.text('instructions') ?? '');
  const said: readonly Message[] =
    api === 'messages' ? fields.objects('messages').flatMap(readMessage) : itemsIn(fields, body['input']);
  return system === '' ? said : [{ role: 'system', content: system }, ...said];
}

const itemsIn = (fields: Fields, input: unknown): readonly Message[] =>
  typeof input === 'string' ? [{ role: 'user', content: input }] : readItems(fields.objects('input'), new ItemStore());

/** A tool in OpenAI's form; ones that the provider itself runs have no schema, and are left out. */
function toolOf(tool: unknown): object[] {
  if (!isRecord(tool)) return [];
  const {
    name,
    description = '',
    parameters = tool['input_schema'],
  } = isRecord(tool['function']) ? tool['function'] : tool;
  return typeof name === 'string' && isRecord(parameters) ? [{ name, description, parameters }] : [];
}

/** What the model said, of a whole reply. @throws Error for one of another shape */
export function readSaid(api: RecordedCall['api'], body: unknown): Said {
  if (!isRecord(body)) throw new Error('the reply is not an object');
  const { id, usage } = body;
  const facts = { ...(typeof id === 'string' ? { replyId: id } : {}), ...(usage == null ? {} : { usage }) };
  if (api === 'messages') {
    const [reply] = readMessage(new Fields({ role: 'assistant', content: body['content'] }));
    return { ...facts, reply: reply ?? { role: 'assistant', content: '' }, ...finishOf(body['stop_reason']) };
  }
  if (api === 'responses') {
    const fields = new Fields({ output: body['output'] }, '', { strict: false, warnings: [] });
    return { ...facts, reply: readItems(fields.objects('output'), new ItemStore())[0], ...finishOf(body['status']) };
  }
  const [choice] = Array.isArray(body['choices']) ? (body['choices'] as unknown[]) : [];
  if (!isRecord(choice)) throw new Error('the reply has no choice');
  const reply = api === 'chat' ? choice['message'] : { role: 'assistant', content: choice['text'] };
  return { ...facts, reply, ...finishOf(choice['finish_reason']) };
}

const finishOf = (finish: unknown) => (typeof finish === 'string' ? { finish } : {});
