import * as library from '@huggingface/tokenizers';

/** What this library uses of @huggingface/tokenizers. Its own types do not resolve from an ESM project: they are all `any` there. */
export interface Library {
  readonly normalizer: ((text: string) => string) | null;
  readonly pre_tokenizer: ((text: string) => string[]) | null;
  model: LibraryModel;
  readonly decoder: ((tokens: string[]) => string) | null;
  encode(text: string, options: { readonly add_special_tokens: boolean }): { readonly ids: number[] };
  token_to_id(token: string): number | undefined;
}

export interface LibraryModel {
  /** Pieces of text → tokens of the vocabulary. */
  (pieces: readonly string[]): string[];
  readonly vocab: readonly string[];
  readonly tokens_to_ids: ReadonlyMap<string, number>;
  readonly unk_token_id: number | undefined;
}

interface LibraryModule {
  readonly Tokenizer: new (tokenizer: object, config: object) => Library;
  readonly SplitPreTokenizer: new (step: object) => { readonly pattern: RegExp | null };
}

const { Tokenizer, SplitPreTokenizer } = library as unknown as LibraryModule;

/** An instance of the library. Throws what it throws on JSON that it cannot read. */
export const createLibrary = (tokenizer: object, config: object): Library => new Tokenizer(tokenizer, config);

/** The regular expression of a Split step, as the library translates it from Oniguruma's syntax. */
export const splitPattern = (step: object): RegExp | null => new SplitPreTokenizer(step).pattern;
