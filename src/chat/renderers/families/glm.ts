import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, textAndThinking } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import { argumentsOf } from '../core/openai.js';
import type { Piece } from '../core/pieces.js';
import { parseJson, pythonJson, type Json } from '../tools/pythonJson.js';
import type { Termination } from '../core/Renderer.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar } from '../core/ResponseScanner.js';
import { sortToolResults } from '../tools/sortToolResults.js';
import { unparsed, type ToolCallResult } from '../tools/toolCallJson.js';

/** Options of {@link GlmRenderer}. */
export interface GlmOptions {
  /** Default `Max`. */
  readonly effort?: 'Low' | 'High' | 'Max';
  /** Leave reasoning at or before the last user message out. Default `false`, which gives the extension property. */
  readonly stripThinkingFromHistory?: boolean;
}

const ROLES: Readonly<Record<string, string>> = {
  system: '<|system|>',
  user: '<|user|>',
  assistant: '<|assistant|>',
  tool: '<|observation|>',
};

/**
 * GLM-5.3: role tokens without end tokens. A reply ends where the next role begins, so it owns that token: `<|user|>`, or `<|observation|>`
 * when it called tools.
 *
 * The prompt always opens a thinking block; visible text of replies is trimmed.
 */
export class GlmRenderer extends MarkedRenderer {
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #effort: string;
  readonly #strips: boolean;

  constructor(tokenizer: Tokenizer, name = 'glm5_3_max_reasoning', options: GlmOptions = {}) {
    super(name, tokenizer);
    this.#effort = options.effort ?? 'Max';
    this.#strips = options.stripThinkingFromHistory ?? false;
    this.stopTokens = ['<|user|>', '<|observation|>', '<|endoftext|>'].map((special) => tokenizer.tokenId(special));
    const think = tokenizer.tokenId('<think>');
    const thinkEnd = tokenizer.tokenId('</think>');
    const call = tokenizer.tokenId('<tool_call>');
    const callEnd = tokenizer.tokenId('</tool_call>');
    this.grammar = {
      start: 'thinking',
      next: (token, mode) => {
        if (token === think && mode !== 'tool') return 'thinking';
        if (token === thinkEnd && mode === 'thinking') return 'text';
        if (token === call && mode === 'text') return 'tool';
        return token === callEnd && mode === 'tool' ? 'text' : undefined;
      },
      trimStart: (space, mode, previous) => (mode === 'text' && previous !== undefined ? '' : space),
      trimEnd: (space, mode, next) => (mode === 'text' && next === 'tool' ? '' : space),
    };
  }

  get hasExtensionProperty(): boolean {
    return !this.#strips;
  }

  protected override terminationOf(stopToken: number): Termination {
    return stopToken === this.stopTokens[2] ? 'end_of_text' : 'stop';
  }

  protected override begin(): readonly Piece[] {
    return this.markup`[gMASK]<sop><|system|>Reasoning Effort: ${this.#effort}`;
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    const split = messages.flatMap((message): Message[] => {
      const { tools = [], ...plain } = message;
      if (tools.length === 0) return [message];
      // Tools have a separate system segment, before the prompt.
      const declared: Message = { ...plain, content: '', tools };
      return plain.content === '' ? [declared] : [declared, plain];
    });
    return sortToolResults(split);
  }

  protected renderMessage(message: Message, context: RenderContext): RenderedMessage {
    const role = this.#role(message.role);
    const header = this.#supplied(context) ? [] : role;
    switch (message.role) {
      case 'assistant':
        return this.#assistant(message, context, role);
      case 'tool': {
        const output = this.markup`<tool_response>${onlyText(message, this.name)}</tool_response>`;
        return { header: context.previous?.role === 'tool' ? [] : header, output };
      }
      default:
        return { header, output: [...this.#declaration(message.tools ?? []), onlyText(message, this.name)] };
    }
  }

  #role(role: Role): Piece[] {
    const special = ROLES[role];
    if (special === undefined) throw new RendererError(`${this.name} has no role '${role}'`);
    return [this.tokenizer.tokenId(special)];
  }

  #assistant(message: Message, context: RenderContext, role: readonly Piece[]): RenderedMessage {
    const { text, thinking } = textAndThinking(message, this.name);
    const keeps = !this.#strips || context.index > context.lastUserIndex;
    const header = [...role, ...this.markup`<think>`];
    const calls = (message.toolCalls ?? []).flatMap((call) => this.#call(call));
    const said = [...this.markup`${keeps ? thinking : ''}</think>`, text.trim(), ...calls];
    const end = this.#terminator(message, context.next);
    if (context.isLast) return { header, output: said, overlap: end };
    return { header, output: [...said, ...end] };
  }

  /** The token this reply ends with: what comes next, if that is what the model would have had to write. */
  #terminator(message: Message, next: Message | undefined): readonly Piece[] {
    const expected = (message.toolCalls ?? []).length > 0 ? 'tool' : 'user';
    return next === undefined || next.role === expected ? this.#role(expected) : [];
  }

  /** True when the reply before has written this message's role already. */
  #supplied({ previous, messages, index }: RenderContext): boolean {
    return previous?.role === 'assistant' && this.#terminator(previous, messages[index]).length > 0;
  }

  protected override generationHeader(role: Role): readonly Piece[] {
    return role === 'assistant' ? [...this.#role(role), ...this.markup`<think>`] : this.#role(role);
  }

  #call(call: ToolCall): Piece[] {
    const fields = argumentsOf(call) ?? new Map<string, unknown>([['arguments', call.arguments]]);
    const pairs = [...fields].flatMap(([key, value]) => {
      const text = typeof value === 'string' ? value : pythonJson(value, { ensureAscii: false });
      return this.markup`<arg_key>${key}</arg_key><arg_value>${text}</arg_value>`;
    });
    return this.markup`<tool_call>${call.name}${pairs}</tool_call>`;
  }

  protected override readTools({ segments, closed }: Block): ToolCallResult[] {
    const rawText = `<tool_call>${this.show(segments)}`;
    if (!closed) return [unparsed(rawText, 'unterminated tool block: no </tool_call>')];
    const [key, keyEnd, value, valueEnd] = ['<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>'].map((s) =>
      this.tokenizer.tokenId(s),
    );
    const name = typeof segments[0] === 'string' ? segments[0].trim() : '';
    if (!/^[\w.-]+$/.test(name)) return [unparsed(`${rawText}</tool_call>`, 'Malformed tool call: no function name')];
    const fields = new Map<string, Json>();
    const rest = segments.slice(1);
    const take = (): string => (typeof rest[0] === 'string' ? (rest.shift() as string) : '');
    const expect = (token: number | undefined): boolean => rest.shift() === token;
    while (rest.length > 0) {
      if (take().trim() !== '')
        return [unparsed(`${rawText}</tool_call>`, 'Unexpected text between tool call arguments')];
      if (rest.length === 0) break;
      const opened = expect(key);
      const field = take().trim();
      if (!opened || !expect(keyEnd) || field === '')
        return [unparsed(`${rawText}</tool_call>`, 'Malformed tool call argument key')];
      take();
      if (!expect(value)) return [unparsed(`${rawText}</tool_call>`, `No value for argument ${field}`)];
      const text = take();
      if (!expect(valueEnd)) return [unparsed(`${rawText}</tool_call>`, `Unterminated value of argument ${field}`)];
      fields.set(field, jsonOrText(text));
    }
    return [{ call: { name, arguments: pythonJson(fields, { ensureAscii: false }) } }];
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }

  #declaration(tools: readonly ToolSpec[]): Piece[] {
    if (tools.length === 0) return [];
    const listed = tools.filter((tool) => (tool as { defer_loading?: unknown }).defer_loading !== true);
    const lines = listed.map((tool) => {
      const fields = Object.entries(tool).filter(([key]) => key !== 'strict' && key !== 'defer_loading');
      return `${pythonJson(new Map(fields), { ensureAscii: false })}\n`;
    });
    return [
      ...this.markup`\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n`,
      ...this
        .markup`You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n${lines.join('')}</tools>\n\n`,
      ...this.markup`For each function call, output the function name and arguments within the following XML format:\n`,
      ...this.markup`<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>`,
      ...this.markup`<arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>...</tool_call>`,
    ];
  }
}

function jsonOrText(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
