import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, withoutTools } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { Piece } from '../core/pieces.js';
import type { RenderContext } from '../core/RenderContext.js';
import type { Grammar } from '../core/ResponseScanner.js';

/** What the model's own template says where a conversation has no system message. */
const SYSTEM = 'You are a helpful AI assistant named SmolLM, trained by Hugging Face';

/**
 * SmolLM2 Instruct: `<|im_start|>role\n…<|im_end|>`, and a default system message where the conversation has none. Its template has no
 * way to declare tools.
 */
export class Smollm2Renderer extends MarkedRenderer {
  readonly hasExtensionProperty = true;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar = { start: 'text', next: () => undefined };

  constructor(tokenizer: Tokenizer, name = 'smollm2') {
    super(name, tokenizer);
    this.stopTokens = [tokenizer.tokenId('<|im_end|>')];
  }

  protected override begin(messages: readonly Message[]): readonly Piece[] {
    return addsSystem(messages) ? this.markup`<|im_start|>system\n${SYSTEM}<|im_end|>` : [];
  }

  protected renderMessage(message: Message, { index, messages }: RenderContext): RenderedMessage {
    withoutTools(message, this.name);
    const newline = index > 0 || addsSystem(messages) ? '\n' : '';
    return {
      header: this.markup`${newline}<|im_start|>${message.role}\n`,
      output: this.markup`${onlyText(message, this.name)}<|im_end|>`,
    };
  }
}

const addsSystem = ([first]: readonly Message[]): boolean => first !== undefined && first.role !== 'system';
