import type { Tokenizer } from '../../tokenizer/Tokenizer.js';

/** What a stretch of sampled tokens is: said, thought, a tool call, or framing that nobody needs to see. */
export type Mode = 'text' | 'thinking' | 'tool' | 'skip';

/** A stretch of one mode. Special tokens inside are kept as ids between the texts, so that text can never pass for one. */
export interface Block {
  readonly mode: Mode;
  readonly segments: readonly (string | number)[];
  /** What the `skip` stretch right before it held: the header, in families that write one. */
  readonly header: readonly (string | number)[];
  /** False when the response ended inside it. */
  readonly closed: boolean;
}

/** How a family's special tokens divide a response. */
export interface Grammar {
  /** What the generation prompt leaves open. */
  readonly start: Mode;
  /**
   * The mode after a special token, or undefined when the token belongs to the stretch it stands in.
   *
   * @param token the special token
   * @param mode the mode it was found in
   * @param segments what that mode has read so far
   */
  next(token: number, mode: Mode, segments: readonly (string | number)[]): Mode | undefined;
  /** A pattern, anchored at the end, for what may turn out to be framing and is held back. Default: white space. */
  readonly tail?: RegExp;
  /** White space that belongs to the framing at the start of a stretch: returns the text without it. */
  trimStart?(space: string, mode: Mode, previous: Mode | undefined): string;
  /** The same for what {@link tail} matched at its end. `next` is undefined if the response stopped. */
  trimEnd?(space: string, mode: Mode, next: Mode | undefined): string;
}

/** A piece of text or thinking that is final. `block` counts stretches from 0. */
export interface ScanDelta {
  readonly mode: 'text' | 'thinking';
  readonly text: string;
  readonly block: number;
}

const SPACE = /^\s*/;
const TRAILING_SPACE = /\s*$/;

/**
 * Reads sampled tokens one by one and divides them into blocks by the family's grammar.
 *
 * `parse` and `parseStream` both run on it, so what is streamed is what is parsed. Text is decoded from bytes, so a character split over
 * tokens comes out whole; leading and trailing white space is held back until it is known whether it is framing.
 */
export class ResponseScanner {
  readonly blocks: Block[] = [];
  readonly #ids: ReadonlySet<number>;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #tail: RegExp;
  #mode: Mode;
  #previous: Mode | undefined;
  #segments: (string | number)[] = [];
  #leading: string | undefined = '';
  #trailing = '';
  #emitted = '';
  #header: readonly (string | number)[] = [];

  constructor(
    private readonly tokenizer: Tokenizer,
    private readonly grammar: Grammar,
    start: Mode,
    private readonly onDelta: (delta: ScanDelta) => void = () => {},
    private readonly onBlock: (block: Block) => void = () => {},
  ) {
    this.#ids = new Set(tokenizer.specialTokens.values());
    this.#mode = start;
    this.#tail = grammar.tail ?? TRAILING_SPACE;
  }

  feed(token: number): void {
    if (this.#ids.has(token)) {
      this.#text(this.#decoder.decode());
      const next = this.grammar.next(token, this.#mode, this.#segments);
      if (next === undefined) this.#special(token);
      else this.#close(next, true);
      return;
    }
    this.#text(this.#decoder.decode(this.tokenizer.decodeBytes([token]), { stream: true }));
  }

  /** Ends the response; the stretch it ended in is not closed. */
  finish(): void {
    this.#text(this.#decoder.decode());
    this.#close(undefined, false);
  }

  #special(token: number): void {
    if (this.#mode === 'text' || this.#mode === 'thinking') this.#text(this.tokenizer.decode([token]));
    else this.#segments.push(token);
  }

  #text(text: string): void {
    if (text === '') return;
    if (this.#mode === 'text' || this.#mode === 'thinking') {
      this.#visible(text);
      return;
    }
    const last = this.#segments.length - 1;
    if (typeof this.#segments[last] === 'string') this.#segments[last] += text;
    else this.#segments.push(text);
  }

  #visible(text: string): void {
    let rest = this.#trailing + text;
    this.#trailing = '';
    if (this.#leading !== undefined) {
      rest = this.#leading + rest;
      const space = SPACE.exec(rest)?.[0] ?? '';
      if (space.length === rest.length) {
        this.#leading = rest;
        return;
      }
      this.#leading = undefined;
      rest = this.#trimStart(space) + rest.slice(space.length);
    }
    this.#trailing = this.#tail.exec(rest)?.[0] ?? '';
    this.#emit(rest.slice(0, rest.length - this.#trailing.length));
  }

  #trimStart(space: string): string {
    return this.grammar.trimStart === undefined ? space : this.grammar.trimStart(space, this.#mode, this.#previous);
  }

  #emit(text: string): void {
    if (text === '') return;
    this.#emitted += text;
    this.onDelta({ mode: this.#mode as 'text' | 'thinking', text, block: this.blocks.length });
  }

  #close(next: Mode | undefined, closed: boolean): void {
    const mode = this.#mode;
    if (mode === 'text' || mode === 'thinking') {
      const space = this.#leading === undefined ? this.#trailing : this.#trimStart(this.#leading);
      this.#emit(this.grammar.trimEnd === undefined ? space : this.grammar.trimEnd(space, mode, next));
      if (this.#emitted !== '') this.#segments = [this.#emitted];
    }
    const block: Block = { mode, segments: this.#segments, header: this.#header, closed };
    if (block.segments.length > 0 || mode === 'tool') {
      this.blocks.push(block);
      this.onBlock(block);
    }
    // Framing between two stretches does not hide what came before it.
    if (mode !== 'skip') this.#previous = mode;
    this.#header = mode === 'skip' ? this.#segments : [];
    this.#segments = [];
    this.#leading = '';
    this.#trailing = '';
    this.#emitted = '';
    if (next !== undefined) this.#mode = next;
  }
}
