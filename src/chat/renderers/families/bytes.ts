import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { onlyText } from '../core/content.js';
import { MarkedRenderer } from '../core/MarkedRenderer.js';
import type { Message, Role, ToolCall, ToolSpec } from '../core/Message.js';
import type { RenderedMessage } from '../core/MessageRenderer.js';
import type { Piece } from '../core/pieces.js';
import { RendererError } from '../core/RendererError.js';
import type { Block, Grammar } from '../core/ResponseScanner.js';
import { parseJson, pythonJson } from '../tools/pythonJson.js';
import { toolCallFromJson, unparsed, type ToolCallResult } from '../tools/toolCallJson.js';

/**
 * The embedded service's byte-level models (`tinker-rx/tiny`, `tinker-rx/small`): a turn is the marker of its role, its bytes, and the end
 * token. A tool call inside a turn is the tool marker and `{"name": …, "arguments": {…}}`. No thinking.
 */
export class BytesRenderer extends MarkedRenderer {
  readonly hasExtensionProperty = true;
  protected readonly stopTokens: readonly number[];
  protected readonly grammar: Grammar;
  readonly #call: number;

  constructor(tokenizer: Tokenizer, name = 'tinker_rx_bytes') {
    super(name, tokenizer);
    this.stopTokens = [tokenizer.tokenId('<|end|>')];
    this.#call = tokenizer.tokenId('<|tool|>');
    this.grammar = { start: 'text', next: (token) => (token === this.#call ? 'tool' : undefined) };
  }

  protected renderMessage(message: Message): RenderedMessage {
    const { toolCalls = [], tools = [] } = message;
    const text = onlyText(message, this.name);
    const said = tools.length === 0 ? text : [text, ...tools.map(declaration)].filter((line) => line !== '').join('\n');
    const calls = toolCalls.flatMap((call) => [this.#call, written(call)]);
    return { header: this.#marker(message.role), output: [said, ...calls, ...this.stopTokens] };
  }

  protected override readTools({ segments, closed }: Block, stopToken: number | undefined): ToolCallResult[] {
    const text = this.show(segments);
    // The end of the turn ends its last call; a response that was cut off inside one has none.
    if (!closed && stopToken === undefined) return [unparsed(`<|tool|>${text}`, 'unterminated tool call')];
    return [toolCallFromJson(text, `<|tool|>${text}`)];
  }

  /** One line of JSON per tool after the system prompt, as short as can be: the embedded models have little context. */
  override declareTools(tools: readonly ToolSpec[], systemPrompt = ''): Message[] {
    return [{ role: 'system', content: systemPrompt, tools }];
  }

  #marker(role: Role): readonly Piece[] {
    const name = role === 'developer' ? 'system' : role;
    if (!['system', 'user', 'assistant', 'tool'].includes(name))
      throw new RendererError(`${this.name} has no role '${role}'`);
    return [this.tokenizer.tokenId(`<|${name}|>`)];
  }
}

const declaration = (tool: ToolSpec): string => pythonJson(tool, { ensureAscii: false });

function written({ name, arguments: json }: ToolCall): string {
  let fields = json;
  try {
    fields = pythonJson(parseJson(json), { ensureAscii: false });
  } catch {
    // Invalid JSON arguments are written unchanged, so that a model can learn what was wrong with them.
  }
  return `{"name": ${pythonJson(name, { ensureAscii: false })}, "arguments": ${fields}}`;
}
