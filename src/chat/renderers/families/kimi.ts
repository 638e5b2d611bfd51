import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { partsOf, textAndThinking } from '../core/content.js';
import { imageChunk, kimiImageTokens } from '../core/images.js';
import { kimiTools } from '../tools/kimiTools.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { ContentPart, Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import type { Piece } from '../core/pieces.js';
import { pythonJson, sortKeys } from '../tools/pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar } from '../core/ResponseScanner.js';
import { readCall, unparsed, type ToolCallResult } from '../tools/toolCallJson.js';

/** Options of {@link KimiRenderer}. */
export interface KimiOptions {
  /** `k2` (the default): the model opens its own thinking block. `k2.5`, also for K2.6: the prompt does, and images are taken. */
  readonly version?: 'k2' | 'k2.5';
  /** K2.5 only: let the model reason. Default `true`; `false` closes the block in the prompt. */
  readonly thinking?: boolean;
  /** Leave reasoning out of earlier turns. Default `true`; `false` gives the extension property. */
  readonly stripThinkingFromHistory?: boolean;
}

const SYSTEM_PROMPT = 'You are Kimi, an AI assistant created by Moonshot AI.';

/**
 * Kimi K2, K2.5 and K2.6: `<|im_user|>user<|im_middle|>…<|im_end|>`, a thinking block on every reply, Moonshot's system prompt if none is
 * given.
 *
 * A turn lasts from the last reply that called no tool, so reasoning survives a whole exchange with tools.
 */
export class KimiRenderer extends MarkedRenderer {
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #newer: boolean;
  readonly #thinking: boolean;
  readonly #strips: boolean;

  constructor(tokenizer: Tokenizer, name = 'kimi_k2', options: KimiOptions = {}) {
    super(name, tokenizer);
    this.#newer = options.version === 'k2.5';
    this.#thinking = options.thinking ?? true;
    this.#strips = options.stripThinkingFromHistory ?? true;
    this.stopTokens = [tokenizer.tokenId('<|im_end|>')];
    const think = tokenizer.tokenId('<think>');
    const thinkEnd = tokenizer.tokenId('</think>');
    const section = tokenizer.tokenId('<|tool_calls_section_begin|>');
    const sectionEnd = tokenizer.tokenId('<|tool_calls_section_end|>');
    this.grammar = {
      start: this.#newer && this.#thinking ? 'thinking' : 'text',
      next: (token, mode) => {
        if (token === think && mode !== 'tool') return 'thinking';
        if (token === thinkEnd && mode === 'thinking') return 'text';
        if (token === section && mode === 'text') return 'tool';
        return token === sectionEnd && mode === 'tool' ? 'text' : undefined;
      },
    };
  }

  get hasExtensionProperty(): boolean {
    return !this.#strips || (this.#newer && !this.#thinking);
  }

  protected override get disablesThinking(): boolean {
    return this.#newer && !this.#thinking;
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    const [first, ...rest] = messages;
    const flag = messages.some((message) => message.trainable !== undefined) ? { trainable: false } : {};
    if (first?.role !== 'system') return [{ role: 'system', content: SYSTEM_PROMPT, ...flag }, ...messages];
    const { tools = [], ...system } = first;
    if (tools.length === 0) return messages;
    const content = system.content === '' ? SYSTEM_PROMPT : system.content;
    return [{ role: 'tool_declare', content: this.#declaration(tools), ...flag }, { ...system, content }, ...rest];
  }

  #declaration(tools: readonly ToolSpec[]): string {
    if (this.#newer) return kimiTools(tools);
    const payload = tools.map((tool) => ({ type: 'function', function: tool }));
    return pythonJson(sortKeys(payload), { ensureAscii: false, compact: true });
  }

  protected renderMessage(message: Message, context: RenderContext): RenderedMessage {
    const { role } = message;
    if (role === 'assistant') return this.#assistant(message, context);
    const said = [...this.#content(partsOf(message.content)), ...this.stopTokens];
    if (role === 'user') return { header: this.markup`<|im_user|>user<|im_middle|>`, output: said };
    if (role !== 'tool') return { header: this.markup`<|im_system|>${role}<|im_middle|>`, output: said };
    const header = this
      .markup`<|im_system|>${message.name ?? 'tool'}<|im_middle|>## Return of ${message.toolCallId ?? ''}\n`;
    return { header, output: said };
  }

  #content(parts: readonly ContentPart[]): Piece[] {
    return parts.flatMap((part): Piece[] => {
      if (part.type === 'text') return [part.text];
      if (part.type !== 'image' || !this.#newer)
        throw new RendererError(`${this.name} does not take ${part.type} parts`);
      return this.markup`<|media_begin|>image<|media_content|>${imageChunk(part, kimiImageTokens)}<|media_end|>\n`;
    });
  }

  #assistant(message: Message, context: RenderContext): RenderedMessage {
    const { text, thinking } = textAndThinking(message, this.name);
    const keeps = !this.#strips || context.index >= this.#turnStart(context.messages);
    return {
      header: this.markup`<|im_assistant|>assistant<|im_middle|>`,
      output: [
        ...this.markup`<think>${keeps ? thinking : ''}</think>`,
        text,
        ...this.#calls(message.toolCalls ?? []),
        ...this.stopTokens,
      ],
    };
  }

  /** After the last reply that called no tool; the reply being produced does not count. */
  #turnStart(messages: readonly Message[]): number {
    const upTo = messages.at(-1)?.role === 'assistant' ? messages.slice(0, -1) : messages;
    return upTo.findLastIndex(({ role, toolCalls = [] }) => role === 'assistant' && toolCalls.length === 0) + 1;
  }

  protected override generationHeader(role: Role): readonly Piece[] {
    if (role === 'user') return this.markup`<|im_user|>user<|im_middle|>`;
    if (role !== 'assistant') return this.markup`<|im_system|>${role}<|im_middle|>`;
    const header = this.markup`<|im_assistant|>assistant<|im_middle|>`;
    if (!this.#newer) return header;
    return [...header, ...(this.#thinking ? this.markup`<think>` : this.markup`<think></think>`)];
  }

  #calls(calls: readonly ToolCall[]): Piece[] {
    if (calls.length === 0) return [];
    const each = calls.flatMap(({ id, name, arguments: json }, index) => {
      const label = id ?? `functions.${name}:${index}`;
      return this.markup`<|tool_call_begin|>${label}<|tool_call_argument_begin|>${json}<|tool_call_end|>`;
    });
    return this.markup`<|tool_calls_section_begin|>${each}<|tool_calls_section_end|>`;
  }

  protected override readTools({ segments, closed }: Block): ToolCallResult[] {
    const begin = this.tokenizer.tokenId('<|tool_call_begin|>');
    const middle = this.tokenizer.tokenId('<|tool_call_argument_begin|>');
    const end = this.tokenizer.tokenId('<|tool_call_end|>');
    const results: ToolCallResult[] = [];
    for (let at = segments.indexOf(begin); at >= 0; at = segments.indexOf(begin, at + 1)) {
      const last = segments.indexOf(end, at);
      const split = segments.indexOf(middle, at);
      const rawText = this.show(segments.slice(at, last < 0 ? undefined : last + 1));
      if (last < 0) results.push(unparsed(rawText, 'unterminated tool block: no <|tool_call_end|>'));
      else if (split < 0 || split > last)
        results.push(unparsed(rawText, 'no <|tool_call_argument_begin|> in the call'));
      else {
        const id = this.show(segments.slice(at + 1, split)).trim();
        results.push(readCall(nameOf(id), this.show(segments.slice(split + 1, last)), rawText, id));
      }
    }
    if (!closed && results.every((result) => result.call)) {
      results.push(unparsed(this.show(segments), 'unterminated tool block: no <|tool_calls_section_end|>'));
    }
    return results;
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }
}

/** `functions.get_weather:0` → `get_weather`. */
function nameOf(id: string): string {
  const label = id.split(':', 1)[0] ?? '';
  const dot = label.indexOf('.');
  return dot < 0 ? label : label.slice(dot + 1);
}
