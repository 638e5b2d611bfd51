import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { hasThinking, partsOf, textOf, thinkingOf } from '../core/content.js';
import type { Content, ContentPart, Message, Role, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { RenderContext } from '../core/RenderContext.js';
import { imageChunk } from '../core/images.js';
import type { Piece } from '../core/pieces.js';
import { pythonJson } from '../tools/pythonJson.js';
import type { Qwen3Options } from './qwen3.js';
import { Qwen35Renderer } from './qwen3_5.js';
import { RendererError } from '../core/RendererError.js';
import { functionTags, pythonScalar } from '../tools/toolCallTags.js';

/** Options of {@link Nemotron3Renderer}. */
export interface Nemotron3Options extends Qwen3Options {
  /** The template of 3 Ultra and the 3.5 models: no newline after reasoning. Default `false`. */
  readonly ultra?: boolean;
  /** Words added to the last user message: `low` (3 Super), `efficient` (3 Ultra, 3.5 Super). Default none. */
  readonly effort?: 'low' | 'efficient';
}

/**
 * Nemotron 3 and 3.5: Qwen3.5's turns, with tools listed as XML after the system prompt, a system turn even when empty, and `<think></think>`
 * before every reply whose reasoning is not shown.
 *
 * A produced turn without reasoning closes the block that the prompt opened (`<think>\n</think>`), so that the prompt stays its prefix.
 */
export class Nemotron3Renderer extends Qwen35Renderer {
  readonly #ultra: boolean;
  readonly #effort: string | undefined;

  constructor(tokenizer: Tokenizer, name = 'nemotron3', options: Nemotron3Options = {}) {
    super(tokenizer, name, options);
    this.#ultra = options.ultra ?? false;
    this.#effort = options.effort;
  }

  /** Not with thinking on, even when kept: a reply without reasoning reads `<think></think>` once it is history. */
  override get hasExtensionProperty(): boolean {
    return this.thinking === 'off';
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    if (messages[0]?.role === 'system') return messages;
    const flag = messages.some((message) => message.trainable !== undefined) ? { trainable: false } : {};
    return [{ role: 'system', content: '', ...flag }, ...messages];
  }

  protected override trimContent(content: Content): Content {
    return typeof content === 'string' ? content.trim() : content;
  }

  protected override renderMessage(message: Message, context: RenderContext): RenderedMessage {
    if (this.#effort === undefined || context.index !== context.lastUserIndex)
      return super.renderMessage(message, context);
    const suffix = `\n\n{reasoning effort: ${this.#effort}}`;
    const content: Content =
      typeof message.content === 'string'
        ? message.content + suffix
        : [...message.content, { type: 'text', text: suffix }];
    return super.renderMessage({ ...message, content }, context);
  }

  protected override renderAssistant(message: Message, context: RenderContext): RenderedMessage {
    const header = this.markup`${context.index > 0 ? '\n' : ''}<|im_start|>assistant\n`;
    const { index, lastUserIndex } = context;
    const history = this.strips && index < lastUserIndex;
    const said = this.contentPieces(partsOf(message.content));
    const rest = [...said, ...this.callPieces(message), ...this.stopTokens];
    const open = this.thinking === 'on' && context.isLast;
    if (hasThinking(message) && !history) {
      const block = this.#ultra ? this.markup`</think>` : this.markup`\n</think>\n`;
      const thinking = thinkingOf(message);
      return open
        ? { header: [...header, ...this.markup`<think>\n`], output: [thinking, ...block, ...rest] }
        : { header, output: [...this.markup`<think>\n`, thinking, ...block, ...rest] };
    }
    if (open) {
      const close = this.#ultra ? this.markup`</think>` : this.markup`</think>\n`;
      return { header: [...header, ...this.markup`<think>\n`], output: [...close, ...rest] };
    }
    // What is left of stripped reasoning is the newline that stood after it; a template quirk trims it before calls.
    const calls = (message.toolCalls ?? []).length > 0;
    const gap = !this.#ultra && history && hasThinking(message) && textOf(message) !== '' && !calls ? '\n' : '';
    return { header: [...header, ...this.markup`<think></think>`, gap], output: rest };
  }

  protected override generationHeader(role: Role, context: RenderContext): readonly Piece[] {
    const header = this.markup`${context.index > 0 ? '\n' : ''}<|im_start|>${role}\n`;
    if (role !== 'assistant') return header;
    return [...header, ...(this.thinking === 'on' ? this.markup`<think>\n` : this.markup`<think></think>`)];
  }

  protected override callPieces(message: Message): Piece[] {
    const { toolCalls = [] } = message;
    if (toolCalls.length === 0) return [];
    const afterBlock = hasThinking(message) && textOf(message) === '';
    const gap = !this.#ultra && afterBlock ? '' : '\n';
    return [gap, ...toolCalls.flatMap((call) => [...this.callTags(call), '\n'])];
  }

  protected override renderToolResult(message: Message, context: RenderContext): RenderedMessage {
    const newline = context.index > 0 ? '\n' : '';
    const content = this.contentPieces(partsOf(message.content));
    return {
      header: context.previous?.role === 'tool' ? [] : this.markup`${newline}<|im_start|>user\n`,
      output: [
        ...this.markup`<tool_response>\n${content}\n</tool_response>\n`,
        ...(context.next?.role === 'tool' ? [] : this.stopTokens),
      ],
    };
  }

  /** An image starts on a new line; several in one message are numbered. */
  protected override contentPieces(parts: readonly ContentPart[]): Piece[] {
    const many = parts.filter((part) => part.type === 'image').length > 1;
    const pieces: Piece[] = [];
    let before = '';
    let count = 0;
    for (const part of parts) {
      if (part.type === 'thinking') continue;
      if (part.type === 'audio' || (part.type === 'image' && !this.#ultra)) {
        throw new RendererError(`${this.name} does not take ${part.type} parts`);
      }
      if (part.type === 'text') {
        pieces.push(part.text);
        if (part.text !== '') before = part.text;
        continue;
      }
      count++;
      const newline = before !== '' && !before.endsWith('\n') ? '\n' : '';
      const label = many ? `<image ${count}>` : '';
      const chunk = imageChunk(part, () => {
        throw new RendererError(`${this.name} cannot count an image's tokens: give the part its expectedTokens`);
      });
      pieces.push(`${newline}${label}`, ...this.markup`<img>${chunk}</img>`);
      before = '';
    }
    return pieces;
  }

  /** Tools come after the system prompt. */
  protected override declaration(tools: readonly ToolSpec[], systemPrompt: readonly Piece[]): Piece[] {
    const gap = systemPrompt.every((piece) => piece === '') ? '' : '\n\n';
    return [...systemPrompt, gap, ...functionTags(this.markup, tools.map(listing).join('\n'))];
  }
}

type Fields = Readonly<Record<string, unknown>>;

function listing(tool: ToolSpec): string {
  const lines = ['<function>', `<name>${tool.name}</name>`];
  const description = (tool.description ?? '').trim();
  if (description !== '') lines.push(`<description>${description}</description>`);
  lines.push('<parameters>');
  const parameters: Fields = tool.parameters ?? {};
  for (const [name, field] of Object.entries((parameters['properties'] ?? {}) as Record<string, Fields>)) {
    lines.push('<parameter>', `<name>${name}</name>`);
    if ('type' in field) lines.push(`<type>${typeName(field['type'])}</type>`);
    if ('description' in field) lines.push(`<description>${String(field['description']).trim()}</description>`);
    if ('enum' in field) lines.push(`<enum>${pythonJson(field['enum'])}</enum>`);
    lines.push(...others(field, ['name', 'type', 'description', 'enum']), '</parameter>');
  }
  lines.push(...others(parameters, ['type', 'properties', 'required']));
  if ('required' in parameters) lines.push(`<required>${pythonJson(parameters['required'])}</required>`);
  lines.push(
    '</parameters>',
    ...others(tool as unknown as Fields, ['type', 'name', 'description', 'parameters']),
    '</function>',
  );
  return lines.join('\n');
}

/** A list of types is printed as Python prints lists. */
function typeName(type: unknown): string {
  return Array.isArray(type) ? `[${type.map((each) => `'${String(each)}'`).join(', ')}]` : String(type);
}

function others(fields: Fields, known: readonly string[]): string[] {
  return Object.entries(fields)
    .filter(([key, value]) => !known.includes(key) && value !== undefined)
    .map(([key, value]) => `<${key}>${pythonScalar(value) ?? pythonJson(value)}</${key}>`);
}
