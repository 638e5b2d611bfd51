import { concat, concatMap, defer, from, map, of, type OperatorFunction } from 'rxjs';
import type { ContentPart, Message, ToolCall, UnparsedToolCall } from './Message.js';
import { MessageRenderer } from './MessageRenderer.js';
import type { ParsedResponse, ParseOptions, ResponseDelta, Termination } from './Renderer.js';
import { ResponseScanner, type Block, type Grammar, type Mode } from './ResponseScanner.js';
import type { ToolCallResult } from '../tools/toolCallJson.js';

interface ReaderOptions {
  readonly start?: Mode;
}

/** Families whose turns end with a special token and whose responses are divided by special tokens. */
export abstract class MarkedRenderer extends MessageRenderer {
  /** The tokens that end a turn. */
  protected abstract readonly stopTokens: readonly number[];
  protected abstract readonly grammar: Grammar;

  /** The calls in one `tool` block. Never throws. */
  protected readTools(_block: Block, _stopToken: number | undefined): ToolCallResult[] {
    return [];
  }

  /** Segments as people read them, special tokens in their own spelling. */
  protected show(segments: readonly (string | number)[]): string {
    return segments
      .map((segment) => (typeof segment === 'string' ? segment : this.tokenizer.decode([segment])))
      .join('');
  }

  getStopSequences(): readonly number[] {
    return this.stopTokens;
  }

  /** Why a response that met this stop token ended. */
  protected terminationOf(_stopToken: number): Termination {
    return 'stop';
  }

  /**
   * True if a complete response that never closes the thinking block its prompt opened has to be taken for text: families whose prompt
   * opens one only at some turns.
   */
  protected get unclosedIsText(): boolean {
    return false;
  }

  parse(tokens: ArrayLike<number>, options: ParseOptions = {}): ParsedResponse {
    const reader = this.#reader(options);
    for (let i = 0; i < tokens.length; i++) reader.feed(tokens[i]!);
    return reader.finish();
  }

  /** @internal What `parseStream` emits between header and end for a response that has arrived as a whole, without its operators. */
  parseWhole(tokens: ArrayLike<number>, options: ParseOptions = {}): readonly ResponseDelta[] {
    const reader = this.#reader(options);
    for (let i = 0; i < tokens.length; i++) reader.feed(tokens[i]!);
    reader.finish();
    return reader.take();
  }

  parseStream(options: ParseOptions = {}): OperatorFunction<number | ArrayLike<number>, ResponseDelta> {
    return (source) =>
      defer(() => {
        const reader = this.#reader(options);
        return concat(
          of<ResponseDelta>({ type: 'header', role: 'assistant' }),
          source.pipe(
            map((item) => (typeof item === 'number' ? [item] : Array.from(item))),
            concatMap((tokens) => {
              for (const token of tokens) reader.feed(token);
              return from(reader.take());
            }),
          ),
          defer(() => {
            const response = reader.finish();
            return from<ResponseDelta[]>([...reader.take(), { type: 'end', response }]);
          }),
        );
      });
  }

  /** One response being read: the scanner's blocks as parts, calls and deltas. */
  #reader({ start = this.grammar.start }: ReaderOptions): {
    feed(token: number): void;
    take(): ResponseDelta[];
    finish(): ParsedResponse;
  } {
    let deltas: ResponseDelta[] = [];
    let stop: number | undefined;
    let held: number | undefined;
    let overrun = false;
    const toolCalls: ToolCall[] = [];
    const unparsedToolCalls: UnparsedToolCall[] = [];
    const parts: ContentPart[] = [];
    let unclosed = false;
    const onBlock = (block: Block): void => {
      if (block.mode === 'text') parts.push({ type: 'text', text: block.segments.join('') });
      if (block.mode === 'thinking') {
        parts.push({ type: 'thinking', thinking: block.segments.join('') });
        unclosed = parts.length === 1 && !block.closed;
      }
      if (block.mode !== 'tool') return;
      for (const result of this.readTools(block, stop)) {
        if (result.call) {
          toolCalls.push(result.call);
          deltas.push({ type: 'tool-call', call: result.call });
        } else {
          unparsedToolCalls.push(result.unparsed);
          deltas.push({ type: 'unparsed-tool-call', call: result.unparsed });
        }
      }
    };
    const scanner = new ResponseScanner(
      this.tokenizer,
      this.grammar,
      start,
      ({ mode, text, block }) => {
        const last = deltas.at(-1);
        const open = last?.type === mode && last.contentIndex === block ? last : undefined;
        // Tokens that arrive together are reported together.
        if (open !== undefined) deltas.pop();
        const before = open === undefined ? '' : open.type === 'text' ? open.text : open.thinking;
        deltas.push(
          mode === 'text'
            ? { type: 'text', text: before + text, contentIndex: block }
            : { type: 'thinking', thinking: before + text, contentIndex: block },
        );
      },
      onBlock,
    );
    return {
      feed: (token) => {
        if (stop !== undefined) {
          overrun ||= this.stopTokens.includes(token);
          return;
        }
        if (held !== undefined) scanner.feed(held);
        held = undefined;
        if (this.stopTokens.includes(token)) stop = token;
        // An end-of-text token counts only as the very last one.
        else if (token === this.tokenizer.eosTokenId) held = token;
        else scanner.feed(token);
      },
      take: () => {
        const taken = deltas;
        deltas = [];
        return taken;
      },
      finish: () => {
        scanner.finish();
        let termination: Termination = 'malformed';
        if (stop !== undefined && !overrun) termination = this.terminationOf(stop);
        else if (stop === undefined && held !== undefined) termination = 'end_of_text';
        const [only] = parts;
        if (unclosed && this.unclosedIsText && termination !== 'malformed' && only?.type === 'thinking') {
          parts[0] = { type: 'text', text: only.thinking };
        }
        return response(parts, toolCalls, unparsedToolCalls, termination);
      },
    };
  }
}

function response(
  parts: readonly ContentPart[],
  toolCalls: readonly ToolCall[],
  unparsedToolCalls: readonly UnparsedToolCall[],
  termination: Termination,
): ParsedResponse {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const thinking = parts.map((part) => (part.type === 'thinking' ? part.thinking : '')).join('');
  const message: Message = {
    role: 'assistant',
    content: parts.every((part) => part.type === 'text') ? text : parts,
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(unparsedToolCalls.length > 0 ? { unparsedToolCalls } : {}),
  };
  return { message, text, thinking, toolCalls, unparsedToolCalls, termination };
}
