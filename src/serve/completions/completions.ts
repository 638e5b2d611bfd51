import { concat, concatMap, defer, forkJoin, from, map, type Observable, of } from 'rxjs';
import { cancelling } from '../../support/cancelling.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { SampleResponse } from '../../wire/sampling.js';
import type { ChatModel } from '../completion/ChatRequest.js';
import { refuseLongTexts, tokensLeft } from '../completion/context.js';
import { event, type Answer, type Endpoint, type Gateway } from '../http/Endpoint.js';
import { GatewayError } from '../http/GatewayError.js';
import { choiceOf } from './choice.js';
import { readTextAsk, type TextAsk } from './completionsRequest.js';

/** `POST /v1/completions`: continues texts as they are, without any template. */
export const completions: Endpoint = (body, gateway) =>
  defer(() => {
    const ask = readTextAsk(body, gateway);
    return from(gateway.find(ask.model)).pipe(
      concatMap((model) => {
        const sampled = defer(() => forkJoin(promptsOf(ask, model).map((prompt) => sample(model, ask, prompt))));
        if (ask.stream) {
          const events = sampled.pipe(concatMap((found) => chunksOf(found, ask, model, gateway)));
          return of<Answer>({ events, warnings: ask.warnings });
        }
        return sampled.pipe(
          map((found): Answer => {
            const json = { ...envelope(ask, gateway), choices: choicesOf(found, ask, model), usage: usageOf(found) };
            return { json, warnings: ask.warnings };
          }),
        );
      }),
    );
  });

/** Most log probabilities of prompt tokens in one answer: writing more would hold everybody up. */
const MOST_ECHOED = 131_072;

/** A prompt and what was sampled for it. */
interface Continued {
  readonly prompt: Int32Array;
  readonly response: SampleResponse;
}

const envelope = ({ model }: TextAsk, gateway: Gateway): object => ({
  id: `cmpl-${gateway.newId()}`,
  object: 'text_completion',
  created: Math.floor(gateway.nowMs() / 1000),
  model: model ?? gateway.mainName,
});

function chunksOf(found: readonly Continued[], ask: TextAsk, model: ChatModel, gateway: Gateway): Observable<string> {
  const shared = envelope(ask, gateway);
  const chunks = choicesOf(found, ask, model).map((choice) => event({ ...shared, choices: [choice] }));
  const usage = ask.includeUsage ? [event({ ...shared, choices: [], usage: usageOf(found) })] : [];
  return concat(from(chunks), from(usage), of(event('[DONE]')));
}

/** All prompts as ids. @throws GatewayError when that, or listing their log probabilities, would take too long */
function promptsOf(
  { prompts, echo, logprobs }: TextAsk,
  { renderer, maxPromptChars = Infinity }: ChatModel,
): Int32Array[] {
  const texts = prompts.filter((prompt) => typeof prompt === 'string');
  refuseLongTexts(texts, maxPromptChars);
  const ids = prompts.map((prompt) =>
    typeof prompt === 'string' ? renderer.tokenizer.encode(prompt) : Int32Array.from(prompt),
  );
  const rows = echo && logprobs !== undefined ? ids.reduce((sum, { length }) => sum + length, 0) : 0;
  if (rows * ((logprobs ?? 0) + 1) > MOST_ECHOED) {
    throw new GatewayError(
      400,
      `prompt has too many tokens to list ${logprobs} logprobs of each: send fewer at once`,
      'prompt',
    );
  }
  return ids;
}

function sample(model: ChatModel, ask: TextAsk, prompt: Int32Array): Observable<Continued> {
  const { logprobs, sampling, count, echo } = ask;
  const scored = echo && logprobs !== undefined;
  // The service samples at least one token; it is dropped where none was asked for.
  const maxTokens = tokensLeft(model, Math.max(1, ask.maxTokens), prompt.length);
  return cancelling(
    model.sampler.sample({
      prompt: ModelInput.fromInts(prompt),
      numSamples: count,
      samplingParams: { ...sampling, ...(maxTokens === undefined ? {} : { maxTokens }) },
      ...(logprobs !== undefined && logprobs > 0 ? { topkSampleLogprobs: logprobs } : {}),
      ...(scored ? { includePromptLogprobs: true } : {}),
      ...(scored && logprobs > 0 ? { topkPromptLogprobs: logprobs } : {}),
    }),
    (response) => ({ prompt, response: ask.maxTokens > 0 ? response : nothingSampled(response) }),
  );
}

const nothingSampled = (response: SampleResponse): SampleResponse => ({
  ...response,
  sequences: response.sequences.map(() => ({
    tokens: new Int32Array(0),
    logprobs: new Float32Array(0),
    stopReason: 'length',
  })),
});

const choicesOf = (found: readonly Continued[], ask: TextAsk, model: ChatModel): object[] =>
  found
    .flatMap(({ prompt, response }) =>
      response.sequences.map((sequence) => choiceOf(prompt, sequence, response, ask, model.renderer)),
    )
    .map((choice, index) => ({ index, ...choice }));

function usageOf(found: readonly Continued[]): object {
  const sum = (of: (one: Continued) => number): number => found.reduce((total, one) => total + of(one), 0);
  const prompt = sum((one) => one.prompt.length);
  const sampled = sum(({ response }) => response.sequences.reduce((total, { tokens }) => total + tokens.length, 0));
  return {
    prompt_tokens: prompt,
    completion_tokens: sampled,
    total_tokens: prompt + sampled,
    prompt_tokens_details: { cached_tokens: sum(({ response }) => response.promptCacheHitTokens) },
  };
}
