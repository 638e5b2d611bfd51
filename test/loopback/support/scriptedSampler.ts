import { map, of, throwError, timer, type Observable } from 'rxjs';
import type { ChatSampler } from '../../../src/ai-sdk/index.js';
import type { ServedSampler } from '../../../src/serve/index.js';
import { getRenderer, type Renderer } from '../../../src/chat/renderers/index.js';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import { TinkerFuture, type SampleOptions, type SampleResponse } from '../../../src/index.js';

export const tokenizer = new ByteTokenizer();
export const renderer = getRenderer('tinker_rx_bytes', tokenizer);

/** A tool call as the embedded models write it. */
export const call = (name: string, input: object): string => `<|tool|>${JSON.stringify({ name, arguments: input })}`;

/**
 * A sampler that gives the next of some replies to every new prompt, and continues one for a prompt that extends the
 * last. An Error among them fails the request. Hand-written: it stands for a service, not for what one sends.
 */
export function scripted(
  replies: readonly (string | Error)[],
  {
    delayMs = 0,
    cached = 0,
    renderer: speaking = renderer,
  }: { readonly delayMs?: number; readonly cached?: number; readonly renderer?: Renderer } = {},
): { sampler: ChatSampler & ServedSampler; asked: SampleOptions[]; prompts: () => string[]; cancelled: () => number } {
  const asked: SampleOptions[] = [];
  const { tokenizer } = speaking;
  const [end] = speaking.getStopSequences() as readonly number[];
  let next = 0;
  let cancelled = 0;
  let last: { readonly start: number; readonly tokens: Int32Array } | undefined;
  const answer = (options: SampleOptions): Observable<SampleResponse> => {
    const { length } = options.prompt;
    const { maxTokens = Infinity } = options.samplingParams ?? {};
    const continues = last !== undefined && length > last.start && length < last.start + last.tokens.length;
    if (!continues) {
      const reply = replies[next++ % replies.length]!;
      if (typeof reply !== 'string') return throwError(() => reply);
      last = { start: length, tokens: Int32Array.of(...tokenizer.encodeWithSpecials(reply), end!) };
    }
    const at = length - last!.start;
    const tokens = last!.tokens.slice(at, at + maxTokens);
    const sequence = {
      stopReason: tokens.at(-1) === end ? ('stop' as const) : ('length' as const),
      tokens,
      logprobs: new Float32Array(tokens.length).fill(-0.5),
    };
    const response = { sequences: Array.from({ length: options.numSamples ?? 1 }, () => sequence) };
    return (delayMs === 0 ? of(0) : timer(delayMs)).pipe(map(() => ({ ...response, promptCacheHitTokens: cached })));
  };
  return {
    asked,
    prompts: () => asked.map(({ prompt }) => tokenizer.decode(prompt.toInts())),
    cancelled: () => cancelled,
    sampler: {
      samplingSessionId: 'sampler-1',
      getBaseModel: () => new TinkerFuture(() => of('test/model')),
      getRenderer: () => new TinkerFuture(() => of(speaking)),
      sample: (options) => {
        asked.push(options);
        return new TinkerFuture(() => answer(options), {
          onFailure: (error) => {
            if ((error as { code?: string } | undefined)?.code === 'cancelled') cancelled++;
            return error;
          },
        });
      },
    },
  };
}
