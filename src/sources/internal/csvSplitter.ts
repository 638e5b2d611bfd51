import { Utf8Chunks } from './Utf8Chunks.js';

export interface CsvRecord {
  /** The line it starts on, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
  /** What is wrong with its quotes, its length or its encoding. */
  readonly problem?: string;
}

/** Cuts CSV (RFC 4180) into records: quoted fields may hold delimiters, line ends and doubled quotes. */
export class CsvSplitter {
  readonly #chunks = new Utf8Chunks();
  #line = 1;
  #startLine = 1;
  #fields: string[] = [];
  #field = '';
  #state: 'start' | 'plain' | 'quoted' | 'closed' = 'start';
  #problem: string | undefined;
  /** Characters of the record so far. */
  #length = 0;
  #afterReturn = false;
  #first = true;

  /** Of a record that is longer than `maxLength` nothing is kept but that it was there. */
  constructor(
    private readonly delimiter: string,
    readonly maxLength: number,
  ) {}

  *push(chunk: Buffer): Generator<CsvRecord> {
    yield* this.#read(this.#chunks.decode(chunk));
  }

  *end(): Generator<CsvRecord> {
    yield* this.#read(this.#chunks.end());
    if (this.#state === 'quoted') this.#problem = 'a quoted field does not end';
    if (this.#state !== 'start' || this.#length > 0) yield this.#record();
  }

  *#read(text: string): Generator<CsvRecord> {
    let from = 0;
    if (this.#first && text.length > 0) {
      this.#first = false;
      if (text.startsWith('\uFEFF')) from = 1;
    }
    for (let place = from; place < text.length; place++) {
      const char = text[place]!;
      if (this.#state === 'quoted') {
        if (char === '"') {
          this.#keep(text.slice(from, place));
          this.#state = 'closed';
        } else if (char === '\n') this.#line++;
        continue;
      }
      const wasReturn = this.#afterReturn;
      this.#afterReturn = char === '\r';
      if (char === '\n' && wasReturn) {
        from = place + 1;
      } else if (char === '\n' || char === '\r' || char === this.delimiter) {
        if (this.#state === 'plain') this.#keep(text.slice(from, place));
        from = place + 1;
        // A blank line is no record.
        const blank = char !== this.delimiter && this.#state === 'start' && this.#length === 0;
        if (!blank) this.#endField();
        if (char !== this.delimiter) {
          this.#line++;
          if (!blank) yield this.#record();
          this.#startLine = this.#line;
        }
      } else if (this.#state === 'start') {
        this.#state = char === '"' ? 'quoted' : 'plain';
        from = char === '"' ? place + 1 : place;
      } else if (this.#state === 'closed') {
        // A doubled quote stands for one; anything else after the closing quote is a mistake.
        if (char !== '"') this.#problem ??= 'text after a closing quote';
        this.#state = char === '"' ? 'quoted' : 'plain';
        from = place;
      }
    }
    if (this.#state === 'plain' || this.#state === 'quoted') this.#keep(text.slice(from));
  }

  #keep(text: string): void {
    // In a chunk that is all UTF-8 the file itself has the character.
    if (!this.#chunks.isUtf8 && text.includes('\uFFFD')) this.#problem ??= 'not UTF-8';
    this.#length += text.length;
    if (this.#length <= this.maxLength) {
      this.#field += text;
      return;
    }
    this.#problem = `longer than ${this.maxLength} bytes`;
    this.#fields = [];
    this.#field = '';
  }

  #endField(): void {
    // The delimiter counts, so that a record of nothing else ends too.
    this.#length++;
    if (this.#length > this.maxLength) this.#keep('');
    else this.#fields.push(this.#field);
    this.#field = '';
    this.#state = 'start';
  }

  #record(): CsvRecord {
    if (this.#state !== 'start') this.#endField();
    const record: CsvRecord = {
      line: this.#startLine,
      fields: this.#fields,
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    };
    this.#fields = [];
    this.#problem = undefined;
    this.#length = 0;
    return record;
  }
}
