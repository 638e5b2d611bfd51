import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { hasThinking, textOf } from '../core/content.js';
import type { Message } from '../core/Message.js';
import type { RenderContext } from '../core/RenderContext.js';
import { pythonJson } from '../tools/pythonJson.js';
import type { Qwen3Options } from './qwen3.js';
import { Qwen35Renderer } from './qwen3_5.js';
import type { Piece } from '../core/pieces.js';
import { RendererError } from '../core/RendererError.js';

/** How hard Qwen3.8 is told to think. */
export type Qwen38Effort = 'xhigh' | 'medium' | 'low';

const EFFORTS: Readonly<Record<Qwen38Effort, string>> = {
  xhigh:
    'Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider plausible ' +
    'alternatives, and prioritize correctness, consistency, and clarity in the final answer.',
  medium: '',
  low:
    'Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion without unnecessary ' +
    'elaboration.',
};

/**
 * Qwen3.8: Qwen3.5 with a sentence about effort at the head of the system message, thinking kept in history, and no system message where an
 * empty one is given.
 */
export class Qwen38Renderer extends Qwen35Renderer {
  readonly #instruction: string;

  constructor(
    tokenizer: Tokenizer,
    name = 'qwen3_8_xhigh_reasoning',
    options: Qwen3Options & { readonly effort?: Qwen38Effort } = {},
  ) {
    super(tokenizer, name, { stripThinkingFromHistory: false, ...options });
    const { effort = 'xhigh' } = options;
    if (!Object.hasOwn(EFFORTS, effort))
      throw new RendererError(`Qwen3.8 knows no effort '${effort}': xhigh, medium, low`);
    this.#instruction = this.thinking === 'on' ? EFFORTS[effort] : '';
  }

  protected override prepare(messages: readonly Message[]): readonly Message[] {
    const [first, ...rest] = messages;
    if (first?.role !== 'system') {
      if (this.#instruction === '') return messages;
      const flag = messages.some((message) => message.trainable !== undefined) ? { trainable: false } : {};
      return [{ role: 'system', content: '', ...flag }, ...messages];
    }
    const empty = textOf(first).trim() === '' && (first.tools ?? []).length === 0;
    return empty && this.#instruction === '' ? rest : messages;
  }

  protected override contentOfFirst(pieces: readonly Piece[]): Piece[] {
    if (this.#instruction === '') return [...pieces];
    const gap = pieces.every((piece) => piece === '') ? '' : '\n\n';
    return [this.#instruction, gap, ...pieces];
  }

  protected override showsEmptyBlock(message: Message, { index, lastUserIndex }: RenderContext): boolean {
    return !hasThinking(message) && (!this.strips || index > lastUserIndex);
  }

  /** Unlike 3.5 it prints true, false and null as JSON. */
  protected override argumentText(value: unknown): string {
    return typeof value === 'string' ? value : pythonJson(value, { ensureAscii: false });
  }
}
