import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, textAndThinking } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import type { Piece } from '../core/pieces.js';
import { pythonJson } from '../tools/pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar } from '../core/ResponseScanner.js';
import { readCall, unparsed, type ToolCallResult } from '../tools/toolCallJson.js';

/** Options of {@link DeepSeekV3Renderer}. */
export interface DeepSeekV3Options {
  /** Let the model reason. Default `false`, as the model's own template. */
  readonly thinking?: boolean;
  /** Leave reasoning out of earlier turns. Default `true`; `false` gives the extension property. */
  readonly stripThinkingFromHistory?: boolean;
}

/**
 * DeepSeek V3.1: `<｜User｜>…<｜Assistant｜></think>…<｜end▁of▁sentence｜>`; the system message stands bare at the head.
 *
 * A reply after tool results has no header, so there the prompt opens no thinking block; a complete response without `</think>` is read as
 * text for that reason (in a stream its deltas come as thinking unless `start` says otherwise).
 */
export class DeepSeekV3Renderer extends MarkedRenderer {
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #thinking: boolean;
  readonly #strips: boolean;

  constructor(tokenizer: Tokenizer, name = 'deepseekv3', options: DeepSeekV3Options = {}) {
    super(name, tokenizer);
    this.#thinking = options.thinking ?? false;
    this.#strips = options.stripThinkingFromHistory ?? true;
    this.stopTokens = [tokenizer.tokenId('<｜end▁of▁sentence｜>')];
    const think = tokenizer.tokenId('<think>');
    const thinkEnd = tokenizer.tokenId('</think>');
    const calls = tokenizer.tokenId('<｜tool▁calls▁begin｜>');
    const callsEnd = tokenizer.tokenId('<｜tool▁calls▁end｜>');
    this.grammar = {
      start: this.#thinking ? 'thinking' : 'text',
      next: (token, mode) => {
        if (token === think && mode !== 'tool') return 'thinking';
        if (token === thinkEnd && mode === 'thinking') return 'text';
        if (token === calls && mode === 'text') return 'tool';
        return token === callsEnd && mode === 'tool' ? 'text' : undefined;
      },
    };
  }

  get hasExtensionProperty(): boolean {
    return !this.#thinking || !this.#strips;
  }

  /** The cookbook's tokens, which these are, hold no reasoning where thinking is off. */
  get leavesOutThinking(): boolean {
    return !this.#thinking;
  }

  protected override get unclosedIsText(): boolean {
    return true;
  }

  protected override begin(): readonly Piece[] {
    return this.markup`<｜begin▁of▁sentence｜>`;
  }

  protected renderMessage(message: Message, context: RenderContext): RenderedMessage {
    switch (message.role) {
      case 'system':
        if (context.index > 0)
          throw new RendererError(`${this.name} takes a system message only at the head of the conversation`);
        return { header: [], output: [onlyText(message, this.name), ...this.#declaration(message.tools ?? [])] };
      case 'user':
        return { header: this.markup`<｜User｜>`, output: [onlyText(message, this.name)] };
      case 'tool':
        return {
          header: this.markup`<｜tool▁output▁begin｜>`,
          output: this.markup`${onlyText(message, this.name)}<｜tool▁output▁end｜>`,
        };
      case 'assistant':
        return this.#assistant(message, context);
      default:
        throw new RendererError(`${this.name} has no role '${message.role}'`);
    }
  }

  #assistant(message: Message, { isLast, previous }: RenderContext): RenderedMessage {
    const { text, thinking } = textAndThinking(message, this.name);
    const said = [text, ...this.#calls(message.toolCalls ?? []), ...this.stopTokens];
    const shows = this.#thinking && (isLast || !this.#strips);
    if (previous?.role === 'tool') {
      return {
        header: [],
        output: shows && thinking !== '' ? [...this.markup`<think>${thinking}</think>`, ...said] : said,
      };
    }
    return shows
      ? { header: this.markup`<｜Assistant｜><think>`, output: [...this.markup`${thinking}</think>`, ...said] }
      : { header: this.markup`<｜Assistant｜></think>`, output: said };
  }

  protected override generationHeader(role: Role, { previous }: RenderContext): readonly Piece[] {
    if (role === 'user') return this.markup`<｜User｜>`;
    if (role !== 'assistant')
      throw new RendererError(`${this.name} generates user and assistant messages, not '${role}'`);
    if (previous?.role === 'tool') return [];
    return this.#thinking ? this.markup`<｜Assistant｜><think>` : this.markup`<｜Assistant｜></think>`;
  }

  #calls(calls: readonly ToolCall[]): Piece[] {
    if (calls.length === 0) return [];
    const each = calls.flatMap(
      ({ name, arguments: json }) => this.markup`<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${json}<｜tool▁call▁end｜>`,
    );
    return this.markup`<｜tool▁calls▁begin｜>${each}<｜tool▁calls▁end｜>`;
  }

  protected override readTools(block: Block): ToolCallResult[] {
    const [begin, separator, end] = ['<｜tool▁call▁begin｜>', '<｜tool▁sep｜>', '<｜tool▁call▁end｜>'].map((special) =>
      this.tokenizer.tokenId(special),
    );
    const results: ToolCallResult[] = [];
    const { segments } = block;
    for (let at = 0; at < segments.length; at++) {
      if (segments[at] !== begin) continue;
      const last = segments.indexOf(end as number, at);
      if (last < 0) {
        results.push(unparsed(this.show(segments.slice(at)), 'unterminated tool block: no <｜tool▁call▁end｜>'));
        return results;
      }
      const middle = segments.indexOf(separator as number, at);
      const rawText = this.show(segments.slice(at, last + 1));
      if (middle < 0 || middle > last) results.push(unparsed(rawText, 'no <｜tool▁sep｜> between name and arguments'));
      else
        results.push(
          readCall(this.show(segments.slice(at + 1, middle)), this.show(segments.slice(middle + 1, last)), rawText),
        );
      at = last;
    }
    if (!block.closed) results.push(unparsed(this.show(segments), 'unterminated tool block: no <｜tool▁calls▁end｜>'));
    return results;
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }

  #declaration(tools: readonly ToolSpec[]): Piece[] {
    if (tools.length === 0) return [];
    const listing = tools
      .map(
        ({ name, description, parameters }) =>
          `### ${name}\nDescription: ${description}\n\nParameters: ${pythonJson(parameters)}`,
      )
      .join('\n');
    return [
      ...this.markup`\n\n## Tools\nYou have access to the following tools:\n\n${listing}\n\n`,
      ...this
        .markup`IMPORTANT: ALWAYS adhere to this exact format for tool use:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>`,
      ...this
        .markup`tool_call_name<｜tool▁sep｜>tool_call_arguments<｜tool▁call▁end｜><｜tool▁calls▁end｜>\n\nWhere:\n`,
      ...this.markup`- \`tool_call_name\` must be an exact match to one of the available tools\n`,
      ...this.markup`- \`tool_call_arguments\` must be valid JSON that strictly follows the tool's Parameters Schema\n`,
      ...this.markup`- For multiple tool calls, chain them directly without separators or spaces`,
    ];
  }
}
