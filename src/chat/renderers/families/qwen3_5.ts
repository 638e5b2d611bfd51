import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { hasThinking, partsOf, textOf, thinkingOf, trimVisible } from '../core/content.js';
import type { Content, Message, Role, ToolCall } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import { argumentsOf } from '../core/openai.js';
import type { Piece } from '../core/pieces.js';
import { pythonJson } from '../tools/pythonJson.js';
import { Qwen3Renderer, thinkToolGrammar, type Qwen3Options } from './qwen3.js';
import type { Block, Grammar } from '../core/ResponseScanner.js';
import { unparsed, type ToolCallResult } from '../tools/toolCallJson.js';
import { functionTags, pythonScalar, toolCallFromTags } from '../tools/toolCallTags.js';

/**
 * Qwen3.5 and 3.6: Qwen3's turns, with calls as `<function=…><parameter=…>`, trimmed content, and a prompt that opens the thinking block.
 *
 * A turn after the last user message always shows a block, empty when it did not reason. Even with thinking kept in history there is no
 * extension property: an empty block after the prompt's `<think>\n` is other tokens than the empty block of history.
 */
export class Qwen35Renderer extends Qwen3Renderer {
  protected override readonly grammar: Grammar;

  constructor(tokenizer: Tokenizer, name = 'qwen3_5', options: Qwen3Options = {}) {
    super(tokenizer, name, { vision: true, ...options });
    const base = thinkToolGrammar(tokenizer, this.thinking === 'on' ? 'thinking' : 'text');
    this.grammar = {
      ...base,
      trimStart: (space, mode, previous) => (mode === 'thinking' || previous !== undefined ? '' : space),
      trimEnd: (space, mode, next) => (mode === 'thinking' || next === 'tool' ? '' : space),
    };
  }

  override get hasExtensionProperty(): boolean {
    return false;
  }

  protected trimContent(content: Content): Content {
    return trimVisible(content);
  }

  protected override renderMessage(message: Message, context: RenderContext): RenderedMessage {
    const trimmed: Message = { ...message, content: this.trimContent(message.content) };
    if (message.role === 'tool') return this.renderToolResult(trimmed, context);
    const newline = context.index > 0 ? '\n' : '';
    if (message.role !== 'assistant') {
      const said = this.contentPieces(partsOf(trimmed.content));
      const declared = message.tools && message.tools.length > 0 ? this.declaration(message.tools, said) : said;
      const output = message.role === 'system' && context.index === 0 ? this.contentOfFirst(declared) : declared;
      return { header: this.markup`${newline}<|im_start|>${message.role}\n`, output: [...output, ...this.stopTokens] };
    }
    return this.renderAssistant(trimmed, context);
  }

  /** The first system message's content, for templates that put text before it. */
  protected contentOfFirst(pieces: readonly Piece[]): Piece[] {
    return [...pieces];
  }

  protected renderAssistant(message: Message, context: RenderContext): RenderedMessage {
    const header = this.markup`${context.index > 0 ? '\n' : ''}<|im_start|>assistant\n`;
    const said = this.contentPieces(partsOf(message.content));
    const rest = [...said, ...this.callPieces(message), ...this.stopTokens];
    const thinking = this.keepsThinking(message, context) ? thinkingOf(message).trim() : undefined;
    if (thinking === undefined) {
      if (!this.showsEmptyBlock(message, context)) return { header, output: rest };
      // The turn being produced comes after the prompt's own `<think>\n`, so its tokens are cut there.
      return context.isLast && this.thinking === 'on'
        ? { header: [...header, ...this.markup`<think>\n`], output: [...this.markup`\n</think>\n\n`, ...rest] }
        : { header: [...header, ...this.markup`<think>\n\n</think>\n\n`], output: rest };
    }
    return context.isLast && this.thinking === 'on'
      ? { header: [...header, ...this.markup`<think>\n`], output: [...this.markup`${thinking}\n</think>\n\n`, ...rest] }
      : { header, output: [...this.markup`<think>\n${thinking}\n</think>\n\n`, ...rest] };
  }

  protected keepsThinking(message: Message, { index, lastUserIndex }: RenderContext): boolean {
    return hasThinking(message) && (!this.strips || index > lastUserIndex);
  }

  protected showsEmptyBlock(message: Message, { index, lastUserIndex }: RenderContext): boolean {
    return index > lastUserIndex && !hasThinking(message);
  }

  protected override generationHeader(role: Role, context: RenderContext): readonly Piece[] {
    const header = this.markup`${context.index > 0 ? '\n' : ''}<|im_start|>${role}\n`;
    if (role !== 'assistant') return header;
    return [...header, ...(this.thinking === 'on' ? this.markup`<think>\n` : this.markup`<think>\n\n</think>\n\n`)];
  }

  protected callPieces(message: Message): Piece[] {
    const { toolCalls = [] } = message;
    const visible = textOf(message).trim() !== '' || partsOf(message.content).some((part) => part.type === 'image');
    return toolCalls.flatMap((call, index) => [index > 0 ? '\n' : visible ? '\n\n' : '', ...this.callTags(call)]);
  }

  /** One call in tags. Arguments that are not a JSON object become one parameter of that name. */
  protected callTags(call: ToolCall): Piece[] {
    const fields = argumentsOf(call) ?? new Map<string, unknown>([['arguments', call.arguments]]);
    const lines = [...fields]
      .map(([key, value]) => `<parameter=${key}>\n${this.argumentText(value)}\n</parameter>\n`)
      .join('');
    return this.markup`<tool_call>\n<function=${call.name}>\n${lines}</function>\n</tool_call>`;
  }

  /** A value as the template prints it: JSON for lists and objects, Python's words for the rest. */
  protected argumentText(value: unknown): string {
    return pythonScalar(value) ?? pythonJson(value, { ensureAscii: false });
  }

  protected override readTools({ segments, closed }: Block): ToolCallResult[] {
    const text = this.show(segments);
    if (!closed) return [unparsed(`<tool_call>${text}`, 'unterminated tool block: no </tool_call>')];
    return [toolCallFromTags(text, `<tool_call>${text}</tool_call>`)];
  }

  /** Tools come before the system prompt. */
  protected declaration(tools: NonNullable<Message['tools']>, systemPrompt: readonly Piece[]): Piece[] {
    const lines = tools
      .map((tool) => pythonJson({ type: 'function', function: tool }, { ensureAscii: false }))
      .join('\n');
    const gap = systemPrompt.every((piece) => piece === '') ? '' : '\n\n';
    return [...functionTags(this.markup, lines), gap, ...systemPrompt];
  }
}
