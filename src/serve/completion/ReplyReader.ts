import { Subject } from 'rxjs';
import type { ResponseDelta } from '../../chat/renderers/core/Renderer.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, TopkLogprobs } from '../../wire/sampling.js';
import type { ChatDelta, ChatModel, ChatReply, ChatRequest } from './ChatRequest.js';
import { endsTurn, TokenCursor } from './TokenCursor.js';
import { StopText } from './StopText.js';

/** Tokens with what is known of each. */
export interface TokenData {
  readonly tokens: Int32Array;
  readonly logprobs?: Float32Array | undefined;
  readonly topkLogprobs?: TopkLogprobs | undefined;
}

/** A part of what was sampled for one reply. */
export interface Part extends TokenData {
  readonly stopReason: SampledSequence['stopReason'] | undefined;
  readonly promptTokens: number;
  readonly promptCacheHitTokens: number;
}

/** Reads one reply: what the renderer finds in it goes in, what the caller is told comes out. */
export class ReplyReader {
  /** Emits when the caller's own stop string has come: nothing further needs to be sampled. */
  readonly enough = new Subject<void>();
  readonly #stop: StopText;
  readonly #parts: Part[] = [];
  readonly #calls: ChatReply['toolCalls'][number][] = [];
  readonly #cursor: TokenCursor | undefined;
  #text = '';
  #thinking = '';

  constructor(
    private readonly model: ChatModel,
    { stop, wantsTokens = false }: ChatRequest,
    private readonly prompt: ModelInput,
  ) {
    this.#stop = new StopText(stop);
    if (wantsTokens) this.#cursor = new TokenCursor(model.renderer.tokenizer);
  }

  /** Keeps a part for the reply at the end. */
  add(part: Part): void {
    this.#parts.push(part);
    this.#cursor?.add(part);
  }

  read(delta: ResponseDelta): ChatDelta[] {
    if (this.#stop.stop !== undefined) return [];
    switch (delta.type) {
      case 'text': {
        const certain = this.#stop.push(delta.text);
        if (this.#stop.stop !== undefined) this.enough.next();
        return this.#say(certain);
      }
      case 'thinking':
        this.#thinking += delta.thinking;
        return [{ type: 'thinking', thinking: delta.thinking, ...this.#tokensOf(delta.thinking) }];
      case 'tool-call': {
        const call = { ...delta.call, id: delta.call.id ?? this.model.newId() };
        this.#calls.push(call);
        return [...this.rest(), { type: 'tool-call', call }];
      }
      case 'unparsed-tool-call':
        // Nothing that was sampled is kept from the caller: it may know what to make of it.
        return this.#say(this.#stop.push(delta.call.rawText));
      default:
        return [];
    }
  }

  /** The text that was held back because it could have begun a stop string. */
  rest(): ChatDelta[] {
    return this.#say(this.#stop.finish());
  }

  /** The whole reply, after everything was read. */
  reply(): ChatReply {
    const parts = this.#parts;
    const first = parts[0]!;
    const stopReason = parts.at(-1)!.stopReason ?? 'length';
    const stopText = this.#stop.stop;
    const stopped = stopText !== undefined || stopReason === 'stop';
    return {
      text: this.#text,
      thinking: this.#thinking,
      toolCalls: this.#calls,
      finish: !stopped ? 'length' : this.#calls.length > 0 ? 'tool_calls' : 'stop',
      stopText,
      stopReason,
      tokens: joinInts(parts.map(({ tokens }) => tokens)),
      logprobs: joinFloats(parts.map(({ logprobs }) => logprobs)),
      topkLogprobs: joinTopk(parts.map(({ topkLogprobs }) => topkLogprobs)),
      told: this.#told(),
      prompt: this.prompt,
      promptTokens: first.promptTokens,
      cachedTokens: first.promptCacheHitTokens,
    };
  }

  #say(more: string): ChatDelta[] {
    this.#text += more;
    return more === '' ? [] : [{ type: 'text', text: more, ...this.#tokensOf(more) }];
  }

  #tokensOf(text: string): Pick<ChatDelta & { type: 'text' }, 'tokens'> {
    return this.#cursor === undefined ? {} : { tokens: this.#cursor.take(text) };
  }

  #told(): number {
    const all = this.#parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
    if (this.#cursor === undefined) return all;
    if (this.#stop.stop !== undefined) return this.#cursor.taken;
    return endsTurn(this.model.renderer, this.#parts.at(-1)!.tokens.at(-1)) ? all - 1 : all;
  }
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
