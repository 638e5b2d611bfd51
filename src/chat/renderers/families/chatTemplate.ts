import { Template } from '@huggingface/jinja';
import type { ModelInput } from '../../../wire/modelInput.js';
import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { assemble, type WeightedRun } from '../core/assemble.js';
import { partsOf, textAndThinking, thinkingOf } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import { contextAt } from '../core/RenderContext.js';
import { checkTrainable, isTrained } from '../core/trainOn.js';
import { createTrusted, encodePieces, type Piece, type Run } from '../core/pieces.js';
import { createMarkDeep, mark, unmark } from '../core/provenance.js';
import type { GenerationPromptOptions, SupervisedExample, SupervisedOptions } from '../core/Renderer.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar, Mode } from '../core/ResponseScanner.js';
import { toolCallFromJson, unparsed, type ToolCallResult } from '../tools/toolCallJson.js';
import { stripEndNewlines, stripStartNewlines } from '../core/trim.js';
import { parseJson } from '../../../support/parseJson.js';

/** Options of {@link ChatTemplateRenderer}. */
export interface ChatTemplateOptions {
  /** The Jinja template. Default: the tokenizer's own. */
  readonly chatTemplate?: string;
  /** Further variables for it, such as `enable_thinking`. Default none. */
  readonly templateVariables?: Readonly<Record<string, unknown>>;
}

/**
 * Any other model, by the chat template that came with its tokenizer.
 *
 * Message text is marked before rendering and unmarked after, so special tokens are recognised only in the template's own words. Spans of
 * replies are found by rendering the conversation up to them with the generation prompt: what is written beyond it is theirs, up to and
 * including the first stop token after it. Calls are read in the common `<tool_call>` JSON form if the tokenizer has that token.
 */
export class ChatTemplateRenderer extends MarkedRenderer {
  /** Whether history changes is the template's secret, so every reply gets its own example; those that extend each other are joined. */
  readonly hasExtensionProperty = false;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #template: Template;
  readonly #variables: Readonly<Record<string, unknown>>;
  readonly #markDeep: (value: unknown) => unknown;
  readonly #trusted: (text: string) => Piece[];

  constructor(tokenizer: Tokenizer, name = 'chat_template', options: ChatTemplateOptions = {}) {
    super(name, tokenizer);
    const source = options.chatTemplate ?? tokenizer.chatTemplate;
    if (source === undefined)
      throw new RendererError(`${tokenizer.id} has no chat template: pass one, or choose a renderer by name`);
    this.#template = new Template(source);
    this.#markDeep = createMarkDeep(tokenizer);
    this.#trusted = createTrusted(tokenizer);
    const special = (id: number | undefined): string =>
      [...tokenizer.specialTokens].find(([, token]) => token === id)?.[0] ?? '';
    this.#variables = {
      bos_token: special(tokenizer.bosTokenId),
      eos_token: special(tokenizer.eosTokenId),
      ...options.templateVariables,
    };
    this.stopTokens = [this.#findStop()];
    this.grammar = this.#findGrammar();
  }

  protected renderMessage(): RenderedMessage {
    throw new RendererError('a chat template renders whole conversations');
  }

  override buildGenerationPrompt(messages: readonly Message[], options: GenerationPromptOptions = {}): ModelInput {
    const { role = 'assistant', prefill = '' } = options;
    if (role !== 'assistant')
      throw new RendererError(`a chat template prompts for assistant messages only, not '${role}'`);
    const runs = this.#encode(this.#render(messages, true));
    if (prefill !== '') runs.push(...encodePieces([prefill], this.tokenizer));
    return assemble(runs.map((run) => ({ run, weight: 0 }))).modelInput;
  }

  override buildSupervisedExample(messages: readonly Message[], options: SupervisedOptions = {}): SupervisedExample {
    const { trainOn = 'last_assistant_message' } = options;
    checkTrainable(messages, trainOn);
    const whole = this.#render(messages, false);
    if (trainOn === 'all_tokens') {
      if (messages.some(({ weight }) => weight === 0)) {
        throw new RendererError(`a chat template cannot leave out a message of weight 0 from 'all_tokens'`);
      }
      return assemble(this.#encode(whole).map((run) => ({ run, weight: 1 })));
    }
    const turnStart = this.lastTurnStart(messages.slice(0, -1));
    const weighted: WeightedRun[] = [];
    let at = 0;
    const add = (end: number, weight: number): void => {
      for (const run of this.#encode(whole.slice(at, end))) weighted.push({ run, weight });
      at = end;
    };
    messages.forEach((message, index) => {
      if (!isTrained(message, contextAt(messages, index), trainOn, turnStart)) return;
      const before = this.#render(messages.slice(0, index), message.role === 'assistant');
      const upTo = this.#render(messages.slice(0, index + 1), false);
      const after = upTo.slice(0, this.#endOfReply(upTo, before.length));
      if (!whole.startsWith(before) || !whole.startsWith(after) || after.length < before.length) {
        throw new RendererError(
          `the chat template of ${this.tokenizer.id} does not continue its own prompt at message ${index}; ` +
            'train one message at a time with buildSupervisedExamples, or use a renderer of its family',
        );
      }
      const thinking = mark(thinkingOf(message)).trim();
      if (index === messages.length - 1 && !after.includes(thinking)) {
        throw new RendererError(
          `the chat template of ${this.tokenizer.id} leaves out the reasoning of message ${index}; ` +
            'leave it out of the data, or use a renderer of its family',
        );
      }
      add(before.length, 0);
      add(after.length, 1);
    });
    // What follows a reply that ends the conversation, such as a newline, was never sampled.
    const last = messages.at(-1);
    if (last === undefined || !isTrained(last, contextAt(messages, messages.length - 1), trainOn, turnStart))
      add(whole.length, 0);
    return assemble(weighted);
  }

  #endOfReply(text: string, from: number): number {
    const stop = [...this.tokenizer.specialTokens].find(([, token]) => token === this.stopTokens[0])?.[0] ?? '';
    const at = stop === '' ? -1 : text.indexOf(stop, from);
    return at < 0 ? text.length : at + stop.length;
  }

  #render(messages: readonly Message[], prompt: boolean): string {
    const tools = messages.flatMap((message) => message.tools ?? []);
    const declared = tools.map((tool) => ({ type: 'function', function: this.#markDeep(tool) }));
    const shown = messages.filter(({ content, tools: own = [] }) => own.length === 0 || content !== '');
    if (shown.length === 0 && !prompt) return '';
    try {
      return this.#template.render({
        ...this.#variables,
        messages: shown.map((message) => this.#plain(message)),
        ...(tools.length > 0 ? { tools: declared } : {}),
        add_generation_prompt: prompt,
      });
    } catch (error) {
      throw new RendererError(
        `the chat template of ${this.tokenizer.id} refuses the conversation: ${(error as Error).message}`,
        {
          cause: error,
        },
      );
    }
  }

  #plain(message: Message): Record<string, unknown> {
    if (!/^[\w.-]+$/.test(message.role)) throw new RendererError(`'${message.role}' is not a known role`);
    const { text, thinking } = textAndThinking(message, this.name);
    const calls = (message.toolCalls ?? []).map(({ id, name, arguments: json }) => ({
      type: 'function',
      ...(id === undefined ? {} : { id: this.#markDeep(id) }),
      function: { name: this.#markDeep(name), arguments: this.#markDeep(parseJson(json, json)) },
    }));
    return {
      role: message.role,
      content: mark(text),
      ...(partsOf(message.content).some((part) => part.type === 'thinking')
        ? { reasoning_content: mark(thinking) }
        : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...(message.toolCallId === undefined ? {} : { tool_call_id: this.#markDeep(message.toolCallId) }),
      ...(message.name === undefined ? {} : { name: this.#markDeep(message.name) }),
    };
  }

  #encode(text: string): Run[] {
    const pieces = this.#trusted(text).map((piece) => (typeof piece === 'string' ? unmark(piece) : piece));
    return encodePieces(pieces, this.tokenizer);
  }

  /** The special token right after a reply, as the template writes one. */
  #findStop(): number {
    const reply = 'reply';
    const probe: Message[] = [
      { role: 'user', content: 'question' },
      { role: 'assistant', content: reply },
    ];
    const text = this.#render(probe, false);
    const after = this.#trusted(text.slice(text.lastIndexOf(mark(reply)) + mark(reply).length));
    const stop = after.find((piece) => typeof piece === 'number') ?? this.tokenizer.eosTokenId;
    if (typeof stop !== 'number')
      throw new RendererError(`the chat template of ${this.tokenizer.id} ends a reply with no special token`);
    return stop;
  }

  #findGrammar(): Grammar {
    const { specialTokens } = this.tokenizer;
    const [think, thinkEnd, call, callEnd] = ['<think>', '</think>', '<tool_call>', '</tool_call>'].map((s) =>
      specialTokens.get(s),
    );
    const prompt = this.#trusted(this.#render([{ role: 'user', content: 'question' }], true));
    const open = think !== undefined && prompt.lastIndexOf(think) > prompt.lastIndexOf(thinkEnd ?? -1);
    return {
      start: open ? 'thinking' : 'text',
      next: (token, mode): Mode | undefined => {
        if (token === think && mode !== 'tool' && mode !== 'skip') return 'thinking';
        if (token === thinkEnd && mode === 'thinking') return 'text';
        if (token === call && mode === 'text') return 'tool';
        return token === callEnd && mode === 'tool' ? 'text' : undefined;
      },
      trimStart: (space, mode, previous) =>
        mode === 'thinking' || previous !== undefined ? stripStartNewlines(space) : space,
      trimEnd: (space, mode, next) => (mode === 'thinking' || next === 'tool' ? stripEndNewlines(space) : space),
    };
  }

  protected override readTools({ segments, closed }: Block): ToolCallResult[] {
    const text = this.show(segments);
    if (!closed) return [unparsed(`<tool_call>${text}`, 'unterminated tool block: no </tool_call>')];
    return [toolCallFromJson(text, `<tool_call>${text}</tool_call>`)];
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }
}
