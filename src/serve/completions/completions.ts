import { concat, concatMap, defer, from, map, type Observable, of } from 'rxjs';
import { cancelling } from '../../operators/internal/cancelling.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SampleResponse } from '../../wire/sampling.js';
import type { ChatModel } from '../completion/ChatRequest.js';
import { StopText } from '../completion/StopText.js';
import { event, type Answer, type Endpoint, type Gateway } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { readSampling } from '../chat/chatRequest.js';

interface TextAsk {
  readonly model: string | undefined;
  readonly prompt: string | readonly number[];
  readonly count: number;
  readonly stream: boolean;
  readonly logprobs: number | undefined;
  readonly stop: readonly string[];
  readonly maxTokens: number;
  readonly sampling: ReturnType<typeof readSampling>;
}

/** `POST /v1/completions`: continues a text as it is, without any template. */
export const completions: Endpoint = (body, gateway) =>
  defer(() => {
    const ask = readTextAsk(body, gateway);
    return from(gateway.find(ask.model)).pipe(
      concatMap((model) =>
        sampled(model, ask).pipe(
          map((response): Answer => {
            const choices = response.sequences.map((sequence, index) => choiceOf(sequence, index, ask, model));
            const shared = {
              id: `cmpl-${gateway.newId()}`,
              object: 'text_completion',
              created: Math.floor(gateway.nowMs() / 1000),
              model: ask.model ?? gateway.mainName,
            };
            const usage = usageOf(response, promptOf(ask, model).length);
            if (!ask.stream) return { json: { ...shared, choices, usage } };
            const chunks = choices.map((choice) => event({ ...shared, choices: [choice] }));
            return { events: concat(from(chunks), of(event({ ...shared, choices: [], usage }), event('[DONE]'))) };
          }),
        ),
      ),
    );
  });

function readTextAsk(body: unknown, gateway: Gateway): TextAsk {
  const fields = new Fields(body);
  const prompt = fields.any('prompt');
  const isTokens = Array.isArray(prompt) && prompt.every((item) => typeof item === 'number');
  if (typeof prompt !== 'string' && !isTokens)
    throw fields.wrong('prompt', 'must be one string or one list of token ids');
  const count = fields.integer('n', 1, 128) ?? 1;
  const ask: TextAsk = {
    model: fields.text('model'),
    prompt: prompt,
    count,
    stream: fields.flag('stream') ?? false,
    logprobs: fields.integer('logprobs', 0, 20),
    stop: fields.texts('stop', 4) ?? [],
    // OpenAI's own default, which clients count on.
    maxTokens: fields.integer('max_tokens', 1, Math.floor(gateway.maxTokens / count)) ?? 16,
    sampling: readSampling(fields),
  };
  for (const name of ['frequency_penalty', 'presence_penalty']) fields.only(name, (value) => value === 0);
  fields.only('best_of', (value) => value === 1);
  fields.only('echo', (value) => value === false);
  fields.ignore('user', 'stream_options');
  fields.done();
  return ask;
}

const promptOf = ({ prompt }: TextAsk, { renderer }: ChatModel): ModelInput =>
  ModelInput.fromInts(typeof prompt === 'string' ? renderer.tokenizer.encode(prompt) : prompt);

function sampled(model: ChatModel, ask: TextAsk): Observable<SampleResponse> {
  const { logprobs = 0, sampling, maxTokens, count } = ask;
  return cancelling(
    model.sampler.sample({
      prompt: promptOf(ask, model),
      numSamples: count,
      samplingParams: { ...sampling, maxTokens },
      ...(logprobs > 0 ? { topkSampleLogprobs: logprobs } : {}),
    }),
  );
}

function choiceOf(
  { tokens, logprobs, topkLogprobs, stopReason }: SampledSequence,
  index: number,
  ask: TextAsk,
  { renderer }: ChatModel,
): object {
  const { tokenizer } = renderer;
  const stop = new StopText(ask.stop);
  const said = tokens.at(-1) === tokenizer.eosTokenId ? tokens.subarray(0, -1) : tokens;
  const text = stop.push(tokenizer.decode(said)) + (stop.stop === undefined ? stop.finish() : '');
  let offset = 0;
  const words = Array.from(tokens, (token) => tokenizer.decode([token]));
  const listed =
    ask.logprobs === undefined || logprobs === undefined
      ? null
      : {
          tokens: words,
          token_logprobs: [...logprobs],
          text_offset: words.map((word) => (offset += word.length) - word.length),
          top_logprobs:
            topkLogprobs === undefined
              ? null
              : words.map((_, row) =>
                  Object.fromEntries(
                    Array.from({ length: topkLogprobs.k }, (_, column) => row * topkLogprobs.k + column).map((cell) => [
                      tokenizer.decode([topkLogprobs.tokenIds[cell]!]),
                      topkLogprobs.logprobs[cell]!,
                    ]),
                  ),
                ),
        };
  const finish = stop.stop !== undefined || stopReason === 'stop' ? 'stop' : 'length';
  return { index, text, logprobs: listed, finish_reason: finish };
}

function usageOf({ sequences, promptCacheHitTokens }: SampleResponse, prompt: number): object {
  const sampled = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return {
    prompt_tokens: prompt,
    completion_tokens: sampled,
    total_tokens: prompt + sampled,
    prompt_tokens_details: { cached_tokens: promptCacheHitTokens },
  };
}
