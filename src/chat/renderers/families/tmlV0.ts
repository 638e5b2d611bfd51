import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { partsOf } from '../core/content.js';
import { imageChunk, inklingImageTokens } from '../core/images.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { ContentPart, Message, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import { argumentsOf } from '../core/openai.js';
import type { Piece } from '../core/pieces.js';
import { isJsonObject, parseJson, pythonJson, sortKeys } from '../tools/pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar, Mode } from '../core/ResponseScanner.js';
import { unparsed, type ToolCallResult } from '../tools/toolCallJson.js';

/** Options of {@link TmlV0Renderer}. */
export interface TmlV0Options {
  /** Thinking effort from 0 to below 1, written into the prompt and into training examples alike. Default 0.9. */
  readonly effort?: number;
}

/** The role of the line about effort. */
const EFFORT_ROLE = 'tml_effort';
const AUTHORS: Readonly<Record<string, string>> = {
  user: '<|message_user|>',
  assistant: '<|message_model|>',
  system: '<|message_system|>',
  tool: '<|message_tool|>',
};

/**
 * Inkling: every part of a message is a separate message, `<|message_user|><|content_text|>…<|end_message|>`, and a model turn ends with
 * `<|content_model_end_sampling|>`. The model writes its own headers, so the prompt ends with the last message.
 */
export class TmlV0Renderer extends MarkedRenderer {
  readonly hasExtensionProperty = true;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #effort: string;

  constructor(tokenizer: Tokenizer, name = 'tml_v0', options: TmlV0Options = {}) {
    super(name, tokenizer);
    const { effort = 0.9 } = options;
    if (!(effort >= 0 && effort < 1)) throw new RangeError(`effort must be at least 0 and below 1, got ${effort}`);
    this.#effort = String(Math.round(effort * 100) / 100);
    this.stopTokens = [tokenizer.tokenId('<|content_model_end_sampling|>')];
    const modes = new Map<number, Mode>([
      [tokenizer.tokenId('<|content_text|>'), 'text'],
      [tokenizer.tokenId('<|content_thinking|>'), 'thinking'],
      [tokenizer.tokenId('<|content_invoke_tool_json|>'), 'tool'],
      [tokenizer.tokenId('<|content_invoke_tool_text|>'), 'tool'],
    ]);
    const end = tokenizer.tokenId('<|end_message|>');
    this.grammar = {
      start: 'skip',
      next: (token, mode) => (mode === 'skip' ? modes.get(token) : token === end ? 'skip' : undefined),
    };
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    const flag = messages.some((message) => message.trainable !== undefined) ? { trainable: false } : {};
    const first = messages.findIndex(({ role }) => role !== 'system');
    const at = first < 0 ? messages.length : first;
    return [...messages.slice(0, at), { role: EFFORT_ROLE, content: '', ...flag }, ...messages.slice(at)];
  }

  protected override generationHeader(role: string): readonly Piece[] {
    if (role !== 'assistant') throw new RendererError(`${this.name} generates assistant messages only, not '${role}'`);
    return [];
  }

  protected renderMessage(message: Message): RenderedMessage {
    if (message.role === EFFORT_ROLE) {
      return {
        header: this.markup`<|message_system|><|content_text|>Thinking effort level: ${this.#effort}<|end_message|>`,
        output: [],
      };
    }
    const special = AUTHORS[message.role];
    if (special === undefined) throw new RendererError(`${this.name} has no role '${message.role}'`);
    const author = [
      this.tokenizer.tokenId(special),
      ...(message.role === 'tool' && message.name ? [message.name] : []),
    ];
    const { toolCalls = [], tools = [] } = message;
    const parts = partsOf(message.content).filter((part) => part.type !== 'text' || part.text !== '');
    const alone = parts.length === 0 && toolCalls.length === 0 && tools.length === 0;
    const shown: readonly ContentPart[] = alone ? [{ type: 'text', text: '' }] : parts;
    const pieces = [
      ...shown.flatMap((part) => [...author, ...this.#part(part), ...this.markup`<|end_message|>`]),
      ...this.#declaration(tools),
      ...toolCalls.flatMap((call) => this.#call(call)),
    ];
    return message.role === 'assistant'
      ? { header: [], output: [...pieces, ...this.stopTokens] }
      : { header: author, output: pieces.slice(author.length) };
  }

  #part(part: ContentPart): Piece[] {
    switch (part.type) {
      case 'text':
        return this.markup`<|content_text|>${part.text}`;
      case 'thinking':
        return this.markup`<|content_thinking|>${part.thinking}`;
      case 'image':
        return this.markup`<|content_image|>${imageChunk(part, inklingImageTokens)}`;
      case 'audio':
        return this.markup`<|content_audio_input|>${{ type: 'dmel', dmel: part.dmel }}<|audio_end|>`;
    }
  }

  #call(call: ToolCall): Piece[] {
    const fields = argumentsOf(call);
    if (fields === undefined)
      throw new RendererError(`${this.name}: the arguments of ${call.name} are not a JSON object`);
    const payload = `{"name":${json(call.name)},"args":${json(sortKeys(fields))}}`;
    return this.markup`<|message_model|>${call.name}<|content_invoke_tool_json|>${payload}<|end_message|>`;
  }

  #declaration(tools: readonly ToolSpec[]): Piece[] {
    if (tools.length === 0) return [];
    const payload = json(sortKeys(tools.map((tool) => ({ ...tool, type: 'function' }))));
    return this.markup`<|message_system|>tool_declare<|content_xml|>${payload}<|end_message|>`;
  }

  protected override readTools({ segments, closed }: Block): ToolCallResult[] {
    const text = this.show(segments);
    if (!closed) return [unparsed(text, 'unterminated tool block: no <|end_message|>')];
    try {
      const value = parseJson(text);
      const name = isJsonObject(value) ? value.get('name') : undefined;
      const args = isJsonObject(value) ? value.get('args') : undefined;
      if (typeof name !== 'string') return [unparsed(text, "Missing or invalid 'name' field")];
      if (!isJsonObject(args)) return [unparsed(text, "Missing or invalid 'args' field")];
      return [{ call: { name, arguments: pythonJson(args, { ensureAscii: false }) } }];
    } catch (error) {
      return [unparsed(text, `Invalid JSON: ${(error as Error).message}`)];
    }
  }

  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }
}

const json = (value: unknown): string => pythonJson(value, { ensureAscii: false, compact: true });
