import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { HuggingFaceTokenizer } from './HuggingFaceTokenizer.js';
import { kimiTokenizer } from './tiktoken/kimi.js';
import type { Tokenizer } from './Tokenizer.js';
import { TokenizerError } from './TokenizerError.js';
import { parseJsonObject, type TokenizerConfigJson, type TokenizerJson } from './tokenizerFiles.js';

/** The files that make a tokenizer, as repositories name them. A folder has `tokenizer.json` or a rank file, and the rest at will. */
export const TOKENIZER_FILES = {
  tokenizer: 'tokenizer.json',
  ranks: 'tiktoken.model',
  config: 'tokenizer_config.json',
  template: 'chat_template.jinja',
  templateJson: 'chat_template.json',
} as const;

/** Path of each file that is there. */
export type TokenizerPaths = { readonly [Key in keyof typeof TOKENIZER_FILES]?: string };

/**
 * Makes a tokenizer of a folder with tokenizer.json (or Kimi's tiktoken.model), tokenizer_config.json and chat_template.jinja, or of one
 * tokenizer.json with the files beside it.
 *
 * @param id how the tokenizer calls itself, the path by default
 * @throws TokenizerError if the folder holds no tokenizer, or a broken one
 */
export async function tokenizerFromFolder(path: string, id: string = path): Promise<Tokenizer> {
  const isFolder = await stat(path).then(
    (entry) => entry.isDirectory(),
    () => undefined,
  );
  if (isFolder === undefined) throw new TokenizerError(`no such folder or file: ${path}`);
  const folder = isFolder ? path : dirname(path);
  const tokenizer = isFolder ? TOKENIZER_FILES.tokenizer : basename(path);
  const paths: Record<string, string> = {};
  for (const [key, name] of Object.entries({ ...TOKENIZER_FILES, tokenizer })) {
    const file = join(folder, name);
    if (
      await stat(file).then(
        (entry) => entry.isFile(),
        () => false,
      )
    )
      paths[key] = file;
  }
  return tokenizerFromPaths(id, paths, folder);
}

/** Makes a tokenizer of the files at the given paths; `place` is what an error names. */
export async function tokenizerFromPaths(id: string, paths: TokenizerPaths, place: string): Promise<Tokenizer> {
  const text = (path: string | undefined) => (path === undefined ? undefined : readFile(path, 'utf8'));
  const [configText, template, templateJson] = await Promise.all([
    text(paths.config),
    text(paths.template),
    text(paths.templateJson),
  ]);
  const config = configText === undefined ? {} : parseJsonObject<TokenizerConfigJson>(configText, paths.config!);
  const chatTemplate =
    template ??
    (templateJson === undefined
      ? undefined
      : parseJsonObject<{ chat_template?: string }>(templateJson, paths.templateJson!).chat_template);
  const rest = { config, ...(chatTemplate === undefined ? {} : { chatTemplate }) };
  if (paths.tokenizer !== undefined) {
    const tokenizer = parseJsonObject<TokenizerJson>((await text(paths.tokenizer))!, paths.tokenizer);
    return new HuggingFaceTokenizer(id, { tokenizer, ...rest }, { kind: 'paths', id, paths });
  }
  if (paths.ranks !== undefined) return kimiTokenizer(id, { ranks: (await text(paths.ranks))!, ...rest });
  throw new TokenizerError(
    `${place} has neither tokenizer.json nor tiktoken.model: write one with transformers, ` +
      `AutoTokenizer.from_pretrained(…).save_pretrained(folder), and load that folder`,
  );
}
