import { hubFile } from './hub/hubFile.js';
import type { HubOptions } from './hub/HubSettings.js';
import { KIMI_REVISIONS } from './tiktoken/kimi.js';
import { TOKENIZER_FILES, tokenizerFromPaths } from './readFolder.js';
import type { Tokenizer } from './Tokenizer.js';

/**
 * Makes the tokenizer of a Hugging Face repository, through the cache that all Hugging Face tools share.
 *
 * @throws TokenizerError if the repository is gated, private, unreachable or without a tokenizer, saying what to do
 */
export async function tokenizerFromHub(repo: string, options: HubOptions = {}): Promise<Tokenizer> {
  const pinned = KIMI_REVISIONS[repo];
  const revision = options.revision ?? pinned;
  const settled = revision === undefined ? options : { ...options, revision };
  const fetch = (key: keyof typeof TOKENIZER_FILES) => hubFile(repo, TOKENIZER_FILES[key], settled);
  // The file that shows whether there is a tokenizer at all comes first; a refusal is then reported once.
  const tokenizer = await fetch('tokenizer');
  const [ranks, config, template, templateJson] = await Promise.all([
    tokenizer === undefined ? fetch('ranks') : undefined,
    fetch('config'),
    fetch('template'),
    fetch('templateJson'),
  ]);
  const paths = Object.fromEntries(
    Object.entries({ tokenizer, ranks, config, template, templateJson }).filter(([, path]) => path !== undefined),
  );
  return tokenizerFromPaths(repo, paths, repo);
}
