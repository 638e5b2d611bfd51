import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, withoutTools } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { Piece } from '../core/pieces.js';
import type { Grammar } from '../core/ResponseScanner.js';

/**
 * Llama 3 Instruct. Unlike the stock template it adds no "Cutting Knowledge Date" to the system message, and like the cookbook it has no
 * tools: the family writes calls as bare JSON, which nothing tells from an answer in JSON.
 */
export class Llama3Renderer extends MarkedRenderer {
  readonly hasExtensionProperty = true;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar = { start: 'text', next: () => undefined };

  constructor(tokenizer: Tokenizer, name = 'llama3') {
    super(name, tokenizer);
    this.stopTokens = [tokenizer.tokenId('<|eot_id|>')];
  }

  protected override begin(): readonly Piece[] {
    return this.markup`<|begin_of_text|>`;
  }

  protected renderMessage(message: Message): RenderedMessage {
    withoutTools(message, this.name);
    return {
      header: this.markup`<|start_header_id|>${message.role}<|end_header_id|>\n\n`,
      output: this.markup`${onlyText(message, this.name)}<|eot_id|>`,
    };
  }
}
