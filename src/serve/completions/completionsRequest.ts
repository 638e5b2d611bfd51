import { hintPenalties, mostWithLogprobs, readSampling } from '../chat/openAiFields.js';
import type { Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';

/** A completion as it was asked for. */
export interface TextAsk {
  readonly model: string | undefined;
  /** Each is continued; one request of the sampler each. */
  readonly prompts: readonly (string | readonly number[])[];
  /** Continuations of every prompt. */
  readonly count: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** How many of the most likely tokens to report; undefined: no log probabilities. */
  readonly logprobs: number | undefined;
  /** Whether the prompt is part of the answer. */
  readonly echo: boolean;
  readonly tokenIds: boolean;
  readonly stop: readonly string[];
  /** 0: nothing is sampled, which makes sense with `echo` and `logprobs`. */
  readonly maxTokens: number;
  readonly sampling: ReturnType<typeof readSampling>;
  readonly warnings: readonly string[];
}

/** Most prompts of one request. */
const MOST_PROMPTS = 2048;

/** Reads the body of `POST /v1/completions`. @throws GatewayError naming the field that cannot be honoured */
export function readTextAsk(body: unknown, gateway: Gateway): TextAsk {
  const fields = new Fields(body, '', { strict: gateway.strict, warnings: [] });
  const prompts = readPrompts(fields);
  const count = fields.integer('n', 1, 128) ?? 1;
  const options = fields.object('stream_options');
  const logprobs = fields.integer('logprobs', 0, 20);
  const most = logprobs === undefined ? gateway.maxTokens : mostWithLogprobs(logprobs, gateway);
  const ask: TextAsk = {
    model: fields.text('model'),
    prompts,
    count,
    stream: fields.flag('stream') ?? false,
    includeUsage: options?.flag('include_usage') ?? false,
    logprobs,
    echo: fields.flag('echo') ?? false,
    tokenIds: fields.flag('return_token_ids') ?? false,
    stop: fields.texts('stop', 16) ?? [],
    // OpenAI's own default, which clients count on.
    maxTokens: fields.atMost('max_tokens', 0, Math.floor(most / (count * prompts.length))) ?? 16,
    sampling: readSampling(fields),
    warnings: fields.warnings,
  };
  hintPenalties(fields);
  fields.only('best_of', (value) => value === 1 || value === count);
  fields.only('suffix', (value) => value === '');
  fields.ignore('user', 'return_tokens_as_token_ids', 'add_special_tokens');
  fields.done();
  return ask;
}

const isIds = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((item) => Number.isSafeInteger(item) && item >= 0);

/** A prompt or a list of them, each as text or as token ids. */
function readPrompts(fields: Fields): TextAsk['prompts'] {
  const given = fields.any('prompt');
  if (typeof given === 'string' || isIds(given)) return [given];
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  if (list.length === 0 || !list.every((item) => typeof item === 'string' || isIds(item))) {
    throw fields.wrong('prompt', 'must be a string, a list of token ids, or a list of those');
  }
  if (list.length > MOST_PROMPTS) throw fields.wrong('prompt', `has more than ${MOST_PROMPTS} entries`);
  return list;
}
