import { defer, map, concat, concatMap, from, of, type OperatorFunction } from 'rxjs';
import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText, withoutTools } from '../core/content.js';
import type { Message } from '../core/Message.js';
import { MessageRenderer, type RenderedMessage } from '../core/MessageRenderer.js';
import type { Piece } from '../core/pieces.js';
import type { ParsedResponse, ResponseDelta, Termination } from '../core/Renderer.js';

const STOP = '\n\nUser:';

/**
 * `User: …` and `Assistant: …`, each ended by a blank line: the format for base models, which have no turn markers.
 *
 * Being plain text, it is the one format whose stop signal a message can contain; a reply that does is read as ending there.
 */
export class RoleColonRenderer extends MessageRenderer {
  readonly hasExtensionProperty = true;

  constructor(tokenizer: Tokenizer, name = 'role_colon') {
    super(name, tokenizer);
  }

  protected override begin(): readonly Piece[] {
    return this.tokenizer.bosTokenId === undefined ? [] : [this.tokenizer.bosTokenId];
  }

  protected renderMessage(message: Message): RenderedMessage {
    withoutTools(message, this.name);
    const role = message.role.charAt(0).toUpperCase() + message.role.slice(1).toLowerCase();
    const output = [` ${onlyText(message, this.name)}\n\n`];
    // The stop signal reaches into the next header, so a last reply has to be completed to be learned whole.
    return { header: [`${role}:`], output, ...(message.role === 'assistant' ? { overlap: ['User:'] } : {}) };
  }

  getStopSequences(): readonly string[] {
    return [STOP];
  }

  parse(tokens: ArrayLike<number>): ParsedResponse {
    const all = Array.from(tokens);
    const ended = all.length > 0 && all.at(-1) === this.tokenizer.eosTokenId;
    if (ended) all.pop();
    const parts = this.tokenizer.decode(all).split(STOP);
    let text = parts[0] ?? '';
    if (text.startsWith(' ')) text = text.slice(1);
    if (text.endsWith('\n\n')) text = text.slice(0, -2);
    let termination: Termination = 'malformed';
    if (parts.length === 1 && ended) termination = 'end_of_text';
    if (parts.length === 2 && !ended) termination = 'stop';
    const message: Message = { role: 'assistant', content: text };
    return { message, text, thinking: '', toolCalls: [], unparsedToolCalls: [], termination };
  }

  parseStream(): OperatorFunction<number | ArrayLike<number>, ResponseDelta> {
    return (source) =>
      defer(() => {
        const tokens: number[] = [];
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        let read = '';
        let emitted = '';
        const delta = (text: string): ResponseDelta[] => {
          if (text.length <= emitted.length) return [];
          const added = text.slice(emitted.length);
          emitted = text;
          return [{ type: 'text', text: added, contentIndex: 0 }];
        };
        const feed = (token: number): ResponseDelta[] => {
          tokens.push(token);
          if (token === this.tokenizer.eosTokenId) return [];
          read += decoder.decode(this.tokenizer.decodeBytes([token]), { stream: true });
          return delta(heldBack(read));
        };
        return concat(
          of<ResponseDelta>({ type: 'header', role: 'assistant' }),
          source.pipe(
            map((item) => (typeof item === 'number' ? [item] : Array.from(item))),
            concatMap((items) => from(items.flatMap(feed))),
          ),
          defer(() => {
            const response = this.parse(tokens);
            return from<ResponseDelta[]>([...delta(response.text), { type: 'end', response }]);
          }),
        );
      });
  }
}

/** The text that is certain: without the leading blank, and without an end that may turn out to be a stop signal. */
function heldBack(read: string): string {
  const stop = read.indexOf(STOP);
  let text = (stop >= 0 ? read.slice(0, stop) : read).replace(/^ /, '');
  const blank = text.lastIndexOf('\n\n');
  if (stop < 0 && blank >= 0 && STOP.startsWith(text.slice(blank))) text = text.slice(0, blank);
  return text.replace(/\n+$/, '');
}
