import { ByteTokenizer } from '../ByteTokenizer.js';
import { HuggingFaceTokenizer } from '../HuggingFaceTokenizer.js';
import { tokenizerFromPaths } from '../readFolder.js';
import type { TokenizerRecipe } from './recipe.js';
import { loadEngine } from '../tiktoken/tiktokenEngine.js';
import { TiktokenTokenizer } from '../tiktoken/TiktokenTokenizer.js';
import type { Tokenizer } from '../Tokenizer.js';

/** Makes the tokenizer that a recipe was taken from. */
export async function tokenizerFromRecipe(recipe: TokenizerRecipe): Promise<Tokenizer> {
  switch (recipe.kind) {
    case 'bytes':
      return new ByteTokenizer(recipe.id);
    case 'files':
      return new HuggingFaceTokenizer(recipe.id, recipe.files);
    case 'paths':
      return tokenizerFromPaths(recipe.id, recipe.paths, recipe.id);
    case 'tiktoken':
      return new TiktokenTokenizer(recipe.id, recipe.fields, await loadEngine(recipe.id));
  }
}
