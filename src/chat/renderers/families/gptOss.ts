import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, textAndThinking } from '../core/content.js';
import { harmonyTools } from '../tools/harmonyTools.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import type { Piece } from '../core/pieces.js';
import { pythonJson } from '../tools/pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar, Mode } from '../core/ResponseScanner.js';
import { readCall, unparsed, type ToolCallResult } from '../tools/toolCallJson.js';

/** Options of {@link GptOssRenderer}. */
export interface GptOssOptions {
  /** Write OpenAI's system message with this effort. Default: no system message. */
  readonly effort?: 'low' | 'medium' | 'high';
  /** The date in that message, `2026-01-02`. Default: today, read when the renderer is made. */
  readonly currentDate?: string;
}

/** The role of the format's own system message; a conversation's system messages are written as the developer's. */
const HARMONY_SYSTEM = 'harmony_system';
const TOOL_CHANNEL = "Calls to these tools must go to the commentary channel: 'functions'.";

/**
 * gpt-oss in OpenAI's harmony format: reasoning in the channel `analysis`, calls and what is said before them in `commentary`, answers in
 * `final`.
 *
 * Reasoning is dropped once its turn has a final answer. A turn ends with `<|return|>`, or with `<|call|>` when it calls a tool; the model
 * makes one call at a time.
 */
export class GptOssRenderer extends MarkedRenderer {
  readonly hasExtensionProperty = false;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #system: string | undefined;

  constructor(tokenizer: Tokenizer, name = 'gpt_oss_no_sysprompt', options: GptOssOptions = {}) {
    super(name, tokenizer);
    const { effort, currentDate = new Date().toISOString().slice(0, 10) } = options;
    this.#system =
      effort &&
      `You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: ${currentDate}\n\n` +
        `Reasoning: ${effort}\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message.`;
    this.stopTokens = [tokenizer.tokenId('<|return|>'), tokenizer.tokenId('<|call|>')];
    const message = tokenizer.tokenId('<|message|>');
    const end = tokenizer.tokenId('<|end|>');
    this.grammar = {
      start: 'skip',
      next: (token, mode, segments) => {
        if (mode === 'skip') return token === message ? modeOf(this.show(segments)) : undefined;
        return token === end ? 'skip' : undefined;
      },
    };
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    const flag = messages.some((message) => message.trainable !== undefined) ? { trainable: false } : {};
    const declared = messages.some(({ tools = [] }) => tools.length > 0);
    const system = [this.#system, declared ? TOOL_CHANNEL : undefined].filter((line) => line !== undefined).join('\n');
    return system === '' ? messages : [{ role: HARMONY_SYSTEM, content: system, ...flag }, ...messages];
  }

  protected renderMessage(message: Message, context: RenderContext): RenderedMessage {
    switch (message.role) {
      case 'assistant':
        return this.#assistant(message, context);
      case 'tool':
        return this.#result(message, context);
      case 'system': {
        const text = onlyText(message, this.name);
        const tools = harmonyTools(message.tools ?? []);
        const instructions = text === '' ? '' : `# Instructions\n\n${text}\n\n`;
        return {
          header: this.markup`<|start|>developer`,
          output: this.markup`<|message|>${instructions}${tools}<|end|>`,
        };
      }
      default: {
        const role = message.role === HARMONY_SYSTEM ? 'system' : message.role;
        return {
          header: this.markup`<|start|>${role}`,
          output: this.markup`<|message|>${onlyText(message, this.name)}<|end|>`,
        };
      }
    }
  }

  protected override generationHeader(role: Role): readonly Piece[] {
    return this.markup`<|start|>${role}`;
  }

  #assistant(message: Message, context: RenderContext): RenderedMessage {
    const { text, thinking } = textAndThinking(message, this.name);
    const { toolCalls = [] } = message;
    const shows = thinking !== '' && this.#showsThinking(message, context);
    const analysis = shows ? this.markup`<|channel|>analysis<|message|>${thinking}<|end|><|start|>assistant` : [];
    const header = this.markup`<|start|>assistant`;
    if (toolCalls.length === 0) {
      const end = context.isLast ? this.markup`<|return|>` : this.markup`<|end|>`;
      return { header, output: [...analysis, ...this.markup`<|channel|>final<|message|>${text}${end}`] };
    }
    const preamble = text === '' ? [] : this.markup`<|channel|>commentary<|message|>${text}<|end|><|start|>assistant`;
    return { header, output: [...analysis, ...preamble, ...this.#calls(toolCalls)] };
  }

  /** Reasoning stays until its turn has an answer; the answer being produced does not count yet. */
  #showsThinking(message: Message, { index, isLast, messages }: RenderContext): boolean {
    if (isLast) return true;
    if ((message.toolCalls ?? []).length === 0) return false;
    return !messages
      .slice(index + 1, -1)
      .some(({ role, toolCalls = [] }) => role === 'assistant' && toolCalls.length === 0);
  }

  #calls(calls: readonly ToolCall[]): Piece[] {
    return calls.flatMap(({ name, arguments: json }, index) => {
      const start = index > 0 ? this.markup`<|start|>assistant` : [];
      return this.markup`${start} to=functions.${name}<|channel|>commentary json<|message|>${json}<|call|>`;
    });
  }

  #result(message: Message, { index, messages }: RenderContext): RenderedMessage {
    const calls = messages.slice(0, index).flatMap(({ toolCalls = [] }) => toolCalls);
    const name = message.name ?? calls.find(({ id }) => id !== undefined && id === message.toolCallId)?.name;
    if (name === undefined) throw new RendererError(`${this.name} writes who answers: give the tool message its name`);
    const author = name.startsWith('functions.') ? name : `functions.${name}`;
    const content = pythonJson(onlyText(message, this.name), { ensureAscii: false });
    return {
      header: this.markup`<|start|>${author} to=assistant`,
      output: this.markup`<|channel|>commentary<|message|>${content}<|end|>`,
    };
  }

  protected override readTools({ header, segments }: Block, stopToken: number | undefined): ToolCallResult[] {
    const about = this.show(header);
    const name = /to=functions\.([^\s<]+)/.exec(about)?.[1] ?? '';
    const json = this.show(segments);
    const rawText = `${about}<|message|>${json}`;
    if (stopToken === undefined) return [unparsed(rawText, 'unterminated tool block: no <|call|>')];
    return [readCall(name, json, rawText)];
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }
}

function modeOf(header: string): Mode {
  if (header.includes('to=functions.')) return 'tool';
  return /<\|channel\|>\s*analysis/.test(header) ? 'thinking' : 'text';
}
