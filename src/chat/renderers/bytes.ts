import type { Tokenizer } from '../tokenizer/Tokenizer.js';
import { onlyText } from './content.js';
import { MarkedRenderer } from './MarkedRenderer.js';
import type { Message, Role } from './Message.js';
import type { RenderedMessage } from './MessageRenderer.js';
import type { Piece } from './pieces.js';
import { RendererError } from './RendererError.js';
import type { Grammar } from './ResponseScanner.js';

/**
 * The embedded service's byte-level models (`tinker-rx/tiny`, `tinker-rx/small`): a turn is the marker of its role, its bytes, and the end
 * token. No thinking, no tool calls.
 */
export class BytesRenderer extends MarkedRenderer {
  readonly hasExtensionProperty = true;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar = { start: 'text', next: () => undefined };

  constructor(tokenizer: Tokenizer, name = 'tinker_rx_bytes') {
    super(name, tokenizer);
    this.stopTokens = [tokenizer.tokenId('<|end|>')];
  }

  protected renderMessage(message: Message): RenderedMessage {
    return { header: this.#marker(message.role), output: [onlyText(message, this.name), ...this.stopTokens] };
  }

  #marker(role: Role): readonly Piece[] {
    const name = role === 'developer' ? 'system' : role;
    if (!['system', 'user', 'assistant', 'tool'].includes(name))
      throw new RendererError(`${this.name} has no role '${role}'`);
    return [this.tokenizer.tokenId(`<|${name}|>`)];
  }
}
