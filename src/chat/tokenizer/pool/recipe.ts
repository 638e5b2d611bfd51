import type { TokenizerPaths } from '../readFolder.js';
import type { TiktokenFields } from '../tiktoken/TiktokenTokenizer.js';
import type { TokenizerFiles } from '../tokenizerFiles.js';

/** What a worker thread needs in order to make the same tokenizer: plain data only. */
export type TokenizerRecipe =
  | { readonly kind: 'bytes'; readonly id: string }
  | { readonly kind: 'files'; readonly id: string; readonly files: TokenizerFiles }
  | { readonly kind: 'paths'; readonly id: string; readonly paths: TokenizerPaths }
  | { readonly kind: 'tiktoken'; readonly id: string; readonly fields: TiktokenFields };

/** Under this key a tokenizer of this library carries its recipe. */
export const RECIPE: unique symbol = Symbol.for('tinker-rx/tokenizer-recipe') as never;

/** A tokenizer that a {@link TokenizerPool} can make again in its workers. */
export interface Reproducible {
  readonly [RECIPE]: TokenizerRecipe;
}

/** The recipe of a tokenizer, if it has one. */
export const recipeOf = (tokenizer: object): TokenizerRecipe | undefined =>
  (tokenizer as Partial<Reproducible>)[RECIPE];
