import {
  concat,
  concatMap,
  defer,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  takeUntil,
  tap,
} from 'rxjs';
import { MarkedRenderer } from '../../chat/renderers/core/MarkedRenderer.js';
import type { ParseOptions, ResponseDelta } from '../../chat/renderers/core/Renderer.js';
import { cancelling } from '../../support/cancelling.js';
import { sampleInPieces } from '../../client/sampling/sampleInPieces.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SampleResponse, SamplingParams } from '../../wire/sampling.js';
import { chatPrompt, type ChatDelta, type ChatModel, type ChatReply, type ChatRequest } from './ChatRequest.js';
import { tokensLeft } from './context.js';
import { ReplyReader, type Part } from './ReplyReader.js';

/**
 * One reply as it arrives, the whole {@link ChatReply} last. Nothing is sent before subscribing; unsubscribing cancels
 * the sample. Failures of the sampler pass through, after what had arrived.
 */
export function streamChat(model: ChatModel, request: ChatRequest): Observable<ChatDelta> {
  return defer(() => {
    const prompt = chatPrompt(model, request);
    return partsOf(model, request, prompt).pipe(readReply(model, request, prompt));
  });
}

/** `count` replies to one prompt, sampled in one request; `onReply` is told of each. */
export function completeChat(
  model: ChatModel,
  request: ChatRequest,
  count = 1,
  onReply: (reply: ChatReply) => void = () => {},
): Observable<readonly ChatReply[]> {
  return defer(() => {
    const prompt = chatPrompt(model, request);
    return cancelling(sampled(model, request, prompt, count), (response) => {
      const parts = response.sequences.map((sequence) => wholePart(sequence, response, prompt));
      const replies = parts.map((part) => readWhole(model, request, prompt, part));
      replies.forEach(onReply);
      return replies;
    });
  });
}

/** Reads a reply that has arrived as a whole: synchronously, without the operators that a stream needs. */
function readWhole(model: ChatModel, request: ChatRequest, prompt: ModelInput, part: Part): ChatReply {
  const reader = new ReplyReader(model, request, prompt);
  reader.add(part);
  for (const delta of deltasOf(model, part.tokens, startOf(request))) reader.read(delta);
  reader.rest();
  return reader.reply();
}

/** A reply that was begun for the model has left its thinking behind. */
const startOf = ({ prefill }: ChatRequest): ParseOptions => (prefill === undefined ? {} : { start: 'text' });

function deltasOf({ renderer }: ChatModel, tokens: Int32Array, start: ParseOptions): readonly ResponseDelta[] {
  if (renderer instanceof MarkedRenderer) return renderer.parseWhole(tokens, start);
  const deltas: ResponseDelta[] = [];
  let failure: { readonly error: unknown } | undefined;
  of(tokens)
    .pipe(renderer.parseStream(start))
    .subscribe({ next: (delta) => deltas.push(delta), error: (error: unknown) => (failure = { error }) });
  if (failure !== undefined) throw failure.error;
  return deltas;
}

function partsOf(model: ChatModel, request: ChatRequest, prompt: ModelInput): Observable<Part> {
  const { pieceTokens, topLogprobs = 0 } = request;
  if (pieceTokens === undefined) {
    return cancelling(sampled(model, request, prompt, 1), (response) =>
      wholePart(response.sequences[0]!, response, prompt),
    );
  }
  return sampleInPieces(model.sampler, {
    prompt,
    tokens: pieceTokens,
    tokenizer: model.renderer.tokenizer,
    samplingParams: paramsOf(model, request, prompt),
    ...(topLogprobs > 0 ? { topkSampleLogprobs: topLogprobs } : {}),
  });
}

function paramsOf(model: ChatModel, { samplingParams, mostTokens }: ChatRequest, prompt: ModelInput): SamplingParams {
  const maxTokens = tokensLeft(model, samplingParams?.maxTokens ?? mostTokens, prompt.length);
  return {
    ...samplingParams,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    stop: model.renderer.getStopSequences(),
  };
}

function sampled(
  model: ChatModel,
  request: ChatRequest,
  prompt: ModelInput,
  count: number,
): ObservableInput<SampleResponse> {
  const { topLogprobs = 0 } = request;
  return model.sampler.sample({
    prompt,
    numSamples: count,
    samplingParams: paramsOf(model, request, prompt),
    ...(topLogprobs > 0 ? { topkSampleLogprobs: topLogprobs } : {}),
  });
}

const wholePart = (sequence: SampledSequence, response: SampleResponse, prompt: ModelInput): Part => ({
  tokens: sequence.tokens,
  logprobs: sequence.logprobs,
  topkLogprobs: sequence.topkLogprobs,
  stopReason: sequence.stopReason,
  promptTokens: prompt.length,
  promptCacheHitTokens: response.promptCacheHitTokens,
});

/** Parts of a sample as deltas, and the reply at the end. Text after a stop string is not read. */
function readReply(model: ChatModel, request: ChatRequest, prompt: ModelInput): OperatorFunction<Part, ChatDelta> {
  return (source) =>
    defer(() => {
      const reader = new ReplyReader(model, request, prompt);
      return concat(
        source.pipe(
          tap((part) => reader.add(part)),
          takeUntil(reader.enough),
          map(({ tokens }) => tokens),
          model.renderer.parseStream(startOf(request)),
          concatMap((delta) => from(reader.read(delta))),
        ),
        defer(() => from([...reader.rest(), { type: 'reply', reply: reader.reply() } as const])),
      );
    });
}
