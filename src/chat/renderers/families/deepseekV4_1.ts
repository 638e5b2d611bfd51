import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, textAndThinking } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import { argumentsOf } from '../core/openai.js';
import { DSML, readDsml } from '../tools/dsml.js';
import type { Piece } from '../core/pieces.js';
import { pythonJson } from '../tools/pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar } from '../core/ResponseScanner.js';
import type { ToolCallResult } from '../tools/toolCallJson.js';

/** Options of {@link DeepSeekV41Renderer}. */
export interface DeepSeekV41Options {
  /** Effort from 1 to 100, or null for chat mode without reasoning. Default 75. */
  readonly effort?: number | null;
  /** Leave reasoning before the last user turn out, unless tools are declared. Default `true`. */
  readonly stripThinkingFromHistory?: boolean;
}

/**
 * DeepSeek V4.1: a system turn that begins with the effort, tool results inside user turns, calls in DSML tags.
 *
 * Neighbouring user and tool messages share one turn, results in the order of their calls.
 */
export class DeepSeekV41Renderer extends MarkedRenderer {
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #effort: number | null;
  readonly #strips: boolean;

  constructor(tokenizer: Tokenizer, name = 'deepseekv4_1', options: DeepSeekV41Options = {}) {
    super(name, tokenizer);
    this.#effort = options.effort === undefined ? 75 : options.effort;
    this.#strips = options.stripThinkingFromHistory ?? true;
    this.stopTokens = [tokenizer.tokenId('<｜end▁of▁sentence｜>')];
    const think = tokenizer.tokenId('<think>');
    const thinkEnd = tokenizer.tokenId('</think>');
    const dsml = tokenizer.tokenId(DSML);
    this.grammar = {
      start: this.#effort === null ? 'text' : 'thinking',
      // A block of calls opens with `\n\n<` before the first marker.
      tail: /\s*<?$/,
      next: (token, mode) => {
        if (token === think && mode !== 'tool') return 'thinking';
        if (token === thinkEnd && mode === 'thinking') return 'text';
        return token === dsml && mode === 'text' ? 'tool' : undefined;
      },
      trimEnd: (tail, mode, next) => (mode === 'text' && next === 'tool' ? tail.replace(/(?:\n\n)?<$/, '') : tail),
    };
  }

  get hasExtensionProperty(): boolean {
    return this.#effort === null || !this.#strips;
  }

  protected override begin(messages: readonly Message[]): readonly Piece[] {
    const bos = this.markup`<｜begin▁of▁sentence｜>`;
    return messages[0]?.role === 'system' || this.#effort === null
      ? bos
      : [...bos, ...this.markup`<｜System｜>${this.#effortLine()}`];
  }

  #effortLine(): string {
    if (this.#effort === null) return '';
    return `Reasoning Effort: ${this.#effort} (range 1-100, the higher the value, the more thorough the reasoning)\n\n`;
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    const prepared: Message[] = [];
    let order = new Map<string, number>();
    for (let at = 0; at < messages.length; at++) {
      const message = messages[at]!;
      if (message.toolCalls)
        order = new Map(message.toolCalls.flatMap(({ id }, index) => (id === undefined ? [] : [[id, index]])));
      if (!isUserTurn(message)) {
        prepared.push(message);
        continue;
      }
      let end = at + 1;
      while (end < messages.length && isUserTurn(messages[end]!)) end++;
      prepared.push(this.#userTurn(messages.slice(at, end), order));
      at = end - 1;
    }
    return prepared;
  }

  #userTurn(turn: readonly Message[], order: ReadonlyMap<string, number>): Message {
    const rank = (message: Message): number => order.get(message.toolCallId ?? '') ?? 0;
    const results = turn.filter(({ role }) => role === 'tool').sort((a, b) => rank(a) - rank(b));
    const blocks = turn.map((message) => {
      if (message.role !== 'tool') return onlyText(message, this.name);
      return `<tool_result>${onlyText(results.shift() ?? message, this.name)}</tool_result>`;
    });
    const flags = turn.map(({ trainable }) => trainable).filter((flag) => flag !== undefined);
    return {
      role: turn.some(({ role }) => role === 'user') ? 'user' : 'tool',
      content: blocks.join('\n\n'),
      ...(flags.length > 0 ? { trainable: flags.some(Boolean) } : {}),
      ...(turn.every(({ weight }) => weight === 0) ? { weight: 0 } : {}),
    };
  }

  protected renderMessage(message: Message, context: RenderContext): RenderedMessage {
    if (message.role === 'system') {
      const tools = this.#declaration(message.tools ?? []);
      const effort = context.index === 0 ? this.#effortLine() : '';
      return { header: this.markup`<｜System｜>`, output: [effort, onlyText(message, this.name), ...tools] };
    }
    if (isUserTurn(message)) return { header: this.markup`<｜User｜>`, output: [onlyText(message, this.name)] };
    if (message.role !== 'assistant') throw new RendererError(`${this.name} has no role '${message.role}'`);
    const { text, thinking } = textAndThinking(message, this.name);
    const said = [text, ...this.#calls(message.toolCalls ?? []), ...this.stopTokens];
    return {
      header: this.generationHeader('assistant', context),
      output: this.#keepsThinking(context) ? [...this.markup`${thinking}</think>`, ...said] : said,
    };
  }

  protected override get disablesThinking(): boolean {
    return this.#effort === null;
  }

  #keepsThinking({ index, messages }: RenderContext): boolean {
    if (this.#effort === null) return false;
    if (!this.#strips || messages.some(({ tools = [] }) => tools.length > 0)) return true;
    return (
      index > messages.findLastIndex((message, at) => isUserTurn(message) || (message.role === 'system' && at > 0))
    );
  }

  protected override generationHeader(role: Role, context: RenderContext): readonly Piece[] {
    if (role === 'user') return this.markup`<｜User｜>`;
    if (role !== 'assistant')
      throw new RendererError(`${this.name} generates user and assistant messages, not '${role}'`);
    const { previous, index } = context;
    // The marker closes a user turn; without one there is none.
    const follows = previous !== undefined && (isUserTurn(previous) || (previous.role === 'system' && index > 1));
    if (!follows) return [];
    return this.#keepsThinking(context) ? this.markup`<｜Assistant｜><think>` : this.markup`<｜Assistant｜></think>`;
  }

  #calls(calls: readonly ToolCall[]): Piece[] {
    if (calls.length === 0) return [];
    const invokes = calls.flatMap((call, index) => {
      const fields = [...(argumentsOf(call) ?? new Map<string, unknown>([['arguments', call.arguments]]))];
      const parameters = fields.flatMap(([key, value], at) => {
        const text = typeof value === 'string' ? value : pythonJson(value, { ensureAscii: false });
        const kind = typeof value === 'string' ? 'true' : 'false';
        return this
          .markup`${at > 0 ? '\n' : ''}<｜DSML｜ parameter name="${key}" string="${kind}">${text}</｜DSML｜ parameter>`;
      });
      return this
        .markup`${index > 0 ? '\n' : ''}<｜DSML｜ invoke name="${call.name}">\n${parameters}\n</｜DSML｜ invoke>`;
    });
    return this.markup`\n\n<｜DSML｜ calls>\n${invokes}\n</｜DSML｜ calls>`;
  }

  protected override readTools({ segments }: Block): ToolCallResult[] {
    const text = segments.filter((segment) => typeof segment === 'string').join('');
    // A character that the response does not contain stands for the marker, so that text cannot pass for it.
    let mark = '\ue000';
    while (text.includes(mark)) mark = String.fromCharCode(mark.charCodeAt(0) + 1);
    const marked = `<${mark}${segments.map((s) => (typeof s === 'string' ? s : mark)).join('')}`;
    return readDsml(marked, mark);
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }

  #declaration(tools: readonly ToolSpec[]): Piece[] {
    if (tools.length === 0) return [];
    const listing = tools.map((tool) => pythonJson(tool, { ensureAscii: false })).join('\n');
    return [
      ...this
        .markup`\n\n## Tools\n\nYou have access to a set of tools to help answer the user's question. You can invoke tools by writing a `,
      ...this
        .markup`"<｜DSML｜ calls>" block like the following:\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="$TOOL_NAME">\n`,
      ...this
        .markup`<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>\n...\n</｜DSML｜ invoke>\n`,
      ...this.markup`<｜DSML｜ invoke name="$TOOL_NAME2">\n...\n</｜DSML｜ invoke>\n</｜DSML｜ calls>\n\n`,
      ...this
        .markup`String parameters should be specified as is and set \`string="true"\`. For all other types (numbers, booleans, `,
      ...this.markup`arrays, objects), pass the value in JSON format and set \`string="false"\`.\n\n`,
      ...this
        .markup`If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside `,
      ...this.markup`<think>...</think> BEFORE any tool calls or final response.\n\n`,
      ...this.markup`Otherwise, output directly after </think> with tool calls or final response.\n\n`,
      ...this.markup`### Available Tool Schemas\n\n${listing}\n\n`,
      ...this
        .markup`You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n`,
    ];
  }
}

function isUserTurn({ role }: Message): boolean {
  return role === 'user' || role === 'tool';
}
