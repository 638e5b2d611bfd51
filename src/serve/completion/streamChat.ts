import {
  concat,
  concatMap,
  defer,
  from,
  map,
  type Observable,
  of,
  type OperatorFunction,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import type { ResponseDelta } from '../../chat/renderers/Renderer.js';
import { cancelling } from '../../operators/internal/cancelling.js';
import { sampleInPieces } from '../../sources/sampleInPieces.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SampleResponse, TopkLogprobs } from '../../wire/sampling.js';
import { chatPrompt, type ChatDelta, type ChatModel, type ChatReply, type ChatRequest } from './ChatRequest.js';
import { StopText } from './StopText.js';

/** A part of what was sampled for one reply. */
interface Part {
  readonly tokens: Int32Array;
  readonly logprobs?: Float32Array | undefined;
  readonly topkLogprobs?: TopkLogprobs | undefined;
  readonly stopReason: SampledSequence['stopReason'] | undefined;
  readonly promptTokens: number;
  readonly promptCacheHitTokens: number;
}

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

/** `count` replies to one prompt, sampled in one request. */
export function completeChat(model: ChatModel, request: ChatRequest, count = 1): Observable<readonly ChatReply[]> {
  return defer(() => {
    const prompt = chatPrompt(model, request);
    return sampled(model, request, prompt, count).pipe(
      concatMap((response) => {
        const replies: ChatReply[] = [];
        const read = response.sequences.map((sequence) =>
          of(wholePart(sequence, response, prompt)).pipe(
            readReply(model, request, prompt),
            tap((delta) => delta.type === 'reply' && replies.push(delta.reply)),
          ),
        );
        // Reading is synchronous: the list is complete when the last one is.
        return concat(...read, of(undefined)).pipe(
          concatMap((delta) => (delta === undefined ? of<readonly ChatReply[]>(replies) : of())),
        );
      }),
    );
  });
}

function partsOf(model: ChatModel, request: ChatRequest, prompt: ModelInput): Observable<Part> {
  const { pieceTokens, topLogprobs = 0 } = request;
  if (pieceTokens === undefined) {
    return sampled(model, request, prompt, 1).pipe(
      map((response) => wholePart(response.sequences[0]!, response, prompt)),
    );
  }
  return sampleInPieces(model.sampler, {
    prompt,
    tokens: pieceTokens,
    tokenizer: model.renderer.tokenizer,
    samplingParams: { ...request.samplingParams, stop: model.renderer.getStopSequences() },
    ...(topLogprobs > 0 ? { topkSampleLogprobs: topLogprobs } : {}),
  });
}

function sampled(
  { sampler, renderer }: ChatModel,
  { samplingParams, topLogprobs = 0 }: ChatRequest,
  prompt: ModelInput,
  count: number,
): Observable<SampleResponse> {
  return cancelling(
    sampler.sample({
      prompt,
      numSamples: count,
      samplingParams: { ...samplingParams, stop: renderer.getStopSequences() },
      ...(topLogprobs > 0 ? { topkSampleLogprobs: topLogprobs } : {}),
    }),
  );
}

const wholePart = (sequence: SampledSequence, response: SampleResponse, prompt: ModelInput): Part => ({
  ...sequence,
  promptTokens: prompt.length,
  promptCacheHitTokens: response.promptCacheHitTokens,
});

/** Parts of a sample as deltas, and the reply at the end. What lies behind a stop string is not read. */
function readReply(model: ChatModel, request: ChatRequest, prompt: ModelInput): OperatorFunction<Part, ChatDelta> {
  return (source) =>
    defer(() => {
      const parts: Part[] = [];
      const stop = new StopText(request.stop);
      const enough = new Subject<void>();
      const calls: ChatReply['toolCalls'][number][] = [];
      let text = '';
      let thinking = '';
      const say = (more: string): ChatDelta[] => {
        text += more;
        return more === '' ? [] : [{ type: 'text', text: more }];
      };
      const read = (delta: ResponseDelta): ChatDelta[] => {
        if (stop.stop !== undefined) return [];
        switch (delta.type) {
          case 'text': {
            const certain = stop.push(delta.text);
            // No further piece is sampled once the caller's own stop has come.
            if (stop.stop !== undefined) enough.next();
            return say(certain);
          }
          case 'thinking':
            thinking += delta.thinking;
            return [delta];
          case 'tool-call': {
            const call = { ...delta.call, id: delta.call.id ?? model.newId() };
            calls.push(call);
            return [...say(stop.finish()), { type: 'tool-call', call }];
          }
          case 'unparsed-tool-call':
            // Nothing that was sampled is kept from the caller: it may know what to make of it.
            return say(stop.push(delta.call.rawText));
          default:
            return [];
        }
      };
      const reply = (): ChatReply => {
        const first = parts[0]!;
        const stopReason = parts.at(-1)!.stopReason ?? 'length';
        const stopped = stop.stop !== undefined || stopReason === 'stop';
        return {
          text,
          thinking,
          toolCalls: calls,
          finish: !stopped ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
          stopText: stop.stop,
          stopReason,
          tokens: joinInts(parts.map(({ tokens }) => tokens)),
          logprobs: joinFloats(parts.map(({ logprobs }) => logprobs)),
          topkLogprobs: joinTopk(parts.map(({ topkLogprobs }) => topkLogprobs)),
          prompt,
          promptTokens: first.promptTokens,
          cachedTokens: first.promptCacheHitTokens,
        };
      };
      return concat(
        source.pipe(
          tap((part) => parts.push(part)),
          takeUntil(enough),
          map(({ tokens }) => tokens),
          model.renderer.parseStream(),
          concatMap((delta) => from(read(delta))),
        ),
        defer(() => from([...say(stop.finish()), { type: 'reply', reply: reply() } as const])),
      );
    });
}

function joinInts(parts: readonly Int32Array[]): Int32Array {
  if (parts.length === 1) return parts[0]!;
  return Int32Array.from(parts.flatMap((part) => [...part]));
}

function joinFloats(parts: readonly (Float32Array | undefined)[]): Float32Array | undefined {
  if (parts.length === 1) return parts[0];
  const known = parts.filter((part) => part !== undefined);
  return known.length < parts.length ? undefined : Float32Array.from(known.flatMap((part) => [...part]));
}

function joinTopk(parts: readonly (TopkLogprobs | undefined)[]): TopkLogprobs | undefined {
  if (parts.length === 1) return parts[0];
  const known = parts.filter((part) => part !== undefined);
  if (known.length < parts.length) return undefined;
  return {
    k: known[0]!.k,
    length: known.reduce((sum, { length }) => sum + length, 0),
    tokenIds: joinInts(known.map(({ tokenIds }) => tokenIds)),
    logprobs: joinFloats(known.map(({ logprobs }) => logprobs))!,
  };
}
