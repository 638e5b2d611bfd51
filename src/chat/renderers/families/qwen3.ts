import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { hasThinking, partsOf, textOf } from '../core/content.js';
import { imageChunk, qwenImageTokens, type ImageTokenRule } from '../core/images.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { ContentPart, Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import type { Piece } from '../core/pieces.js';
import { parseJson, pythonJson } from '../tools/pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar, Mode } from '../core/ResponseScanner.js';
import { toolCallFromJson, unparsed, type ToolCallResult } from '../tools/toolCallJson.js';
import { stripEndNewlines, stripNewlines, stripStartNewlines } from '../core/trim.js';

/** How a Qwen3 model treats reasoning. */
export type Qwen3Thinking = 'on' | 'off' | 'none';

/** Options of {@link Qwen3Renderer}. */
export interface Qwen3Options {
  /** `on` (default), `off` (the prompt closes an empty block), `none` (2507 instruct models, which know no block). */
  readonly thinking?: Qwen3Thinking;
  /** Leave reasoning out of earlier turns, as the model was trained. Default `true`; `false` gives the extension property. */
  readonly stripThinkingFromHistory?: boolean;
  /** Take image parts. Default `false`. */
  readonly vision?: boolean;
}

/**
 * Qwen3 and Qwen3-VL: `<|im_start|>role\n…<|im_end|>`, reasoning in `<think>`, calls as JSON in `<tool_call>`, tool results as user turns.
 *
 * Only the turn being produced shows its reasoning; a conversation without a user message shows none, as in the model's own template.
 */
export class Qwen3Renderer extends MarkedRenderer {
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  protected readonly thinking: Qwen3Thinking;
  protected readonly strips: boolean;
  protected readonly vision: boolean;
  protected readonly imageTokens: ImageTokenRule = qwenImageTokens;

  constructor(tokenizer: Tokenizer, name = 'qwen3', options: Qwen3Options = {}) {
    super(name, tokenizer);
    const { thinking = 'on', stripThinkingFromHistory = true, vision = false } = options;
    this.thinking = thinking;
    this.strips = stripThinkingFromHistory;
    this.vision = vision;
    this.stopTokens = [tokenizer.tokenId('<|im_end|>')];
    this.grammar = thinkToolGrammar(tokenizer);
  }

  get hasExtensionProperty(): boolean {
    return this.thinking === 'none' || (this.thinking === 'on' && !this.strips);
  }

  protected override get disablesThinking(): boolean {
    return this.thinking === 'off';
  }

  protected renderMessage(message: Message, context: RenderContext): RenderedMessage {
    const { role, toolCalls = [] } = message;
    const newline = context.index > 0 ? '\n' : '';
    if (role === 'tool') return this.renderToolResult(message, context);
    const header = this.markup`${newline}<|im_start|>${role}\n`;
    const said =
      role === 'assistant' ? this.#assistantContent(message, context) : this.contentPieces(partsOf(message.content));
    const calls = this.#calls(toolCalls, textOf(message) !== '');
    return { header, output: [...said, ...this.toolDeclaration(message), ...calls, ...this.stopTokens] };
  }

  protected override generationHeader(role: Role, context: RenderContext): readonly Piece[] {
    const newline = context.index > 0 ? '\n' : '';
    return this.thinking === 'off' && role === 'assistant'
      ? this.markup`${newline}<|im_start|>${role}\n<think>\n\n</think>\n\n`
      : this.markup`${newline}<|im_start|>${role}\n`;
  }

  /** Results of one round of calls share one user turn. */
  protected renderToolResult(message: Message, context: RenderContext): RenderedMessage {
    const newline = context.index > 0 ? '\n' : '';
    const content = this.contentPieces(partsOf(message.content));
    return {
      header: context.previous?.role === 'tool' ? ['\n'] : this.markup`${newline}<|im_start|>user\n`,
      output: [
        ...this.markup`<tool_response>\n${content}\n</tool_response>`,
        ...(context.next?.role === 'tool' ? [] : this.stopTokens),
      ],
    };
  }

  /** Text and images in order; reasoning is the caller's business. */
  protected contentPieces(parts: readonly ContentPart[]): Piece[] {
    return parts.flatMap((part): Piece[] => {
      if (part.type === 'text') return [part.text];
      if (part.type === 'thinking') return [];
      if (part.type === 'audio' || !this.vision)
        throw new RendererError(`${this.name} does not take ${part.type} parts`);
      return this.markup`<|vision_start|>${imageChunk(part, this.imageTokens)}<|vision_end|>`;
    });
  }

  #assistantContent(message: Message, context: RenderContext): Piece[] {
    const parts = partsOf(message.content);
    const produced = context.isLast;
    if (this.thinking === 'none') {
      if (this.strips && !produced) return this.contentPieces(parts);
      return parts.flatMap((part) =>
        part.type === 'thinking' ? this.markup`<think>${part.thinking}</think>` : this.contentPieces([part]),
      );
    }
    // The template looks for the last user message, and without one it frames nothing.
    const framed = context.lastUserIndex >= 0 && (produced || !this.strips);
    if (!framed) {
      if (this.thinking === 'off' && produced && context.lastUserIndex < 0) {
        throw new RendererError(
          `${this.name}: a conversation without a user message gets no empty thinking block, but the prompt always writes one. ` +
            'Add a user message, or use the thinking renderer.',
        );
      }
      return this.contentPieces(parts);
    }
    const pieces: Piece[] = hasThinking(message) ? [] : this.markup`<think>\n\n</think>\n\n`;
    let afterBlock = pieces.length > 0;
    for (const part of parts) {
      if (part.type === 'thinking') pieces.push(...this.markup`<think>\n${stripNewlines(part.thinking)}\n</think>\n\n`);
      else if (part.type === 'text') pieces.push(afterBlock ? stripStartNewlines(part.text) : part.text);
      else pieces.push(...this.contentPieces([part]));
      afterBlock = part.type === 'thinking';
    }
    return pieces;
  }

  #calls(calls: readonly ToolCall[], afterText: boolean): Piece[] {
    return calls.flatMap(({ name, arguments: json }, index) => {
      const separator = index > 0 || afterText ? '\n' : '';
      const payload = `{"name": ${pythonJson(name, { ensureAscii: false })}, "arguments": ${pythonArguments(json)}}`;
      return this.markup`${separator}<tool_call>\n${payload}\n</tool_call>`;
    });
  }

  protected override readTools({ segments, closed }: Block): ToolCallResult[] {
    const text = this.show(segments);
    if (!closed) return [unparsed(`<tool_call>${text}`, 'unterminated tool block: no </tool_call>')];
    return [toolCallFromJson(text, `<tool_call>${text}</tool_call>`)];
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }

  /** The system message's own words about its tools. */
  protected toolDeclaration({ tools = [], content }: Message): Piece[] {
    if (tools.length === 0) return [];
    const lines = tools
      .map((tool) => pythonJson({ type: 'function', function: tool }, { ensureAscii: false }))
      .join('\n');
    const gap = textOf({ content }) === '' ? '' : '\n\n';
    return this
      .markup`${gap}# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n${lines}\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>`;
  }
}

/** Arguments in Python's spacing; invalid JSON is written unchanged. */
function pythonArguments(json: string): string {
  try {
    return pythonJson(parseJson(json), { ensureAscii: false });
  } catch {
    return json;
  }
}

/** `<think>` … `</think>` and `<tool_call>` … `</tool_call>`, with the newlines around them as framing. */
export function thinkToolGrammar(tokenizer: Tokenizer, start: Mode = 'text'): Grammar {
  const think = tokenizer.tokenId('<think>');
  const thinkEnd = tokenizer.tokenId('</think>');
  const call = tokenizer.tokenId('<tool_call>');
  const callEnd = tokenizer.tokenId('</tool_call>');
  return {
    start,
    next: (token, mode) => {
      if (mode === 'text' && token === think) return 'thinking';
      if (mode === 'text' && token === call) return 'tool';
      if (mode === 'thinking' && token === thinkEnd) return 'text';
      if (mode === 'tool' && token === callEnd) return 'text';
      return undefined;
    },
    trimStart: (space, mode, previous) =>
      mode === 'thinking' || previous !== undefined ? stripStartNewlines(space) : space,
    trimEnd: (space, mode, next) => {
      if (mode === 'thinking') return stripEndNewlines(space);
      return next === 'tool' ? space.replace(/\n$/, '') : space;
    },
  };
}
