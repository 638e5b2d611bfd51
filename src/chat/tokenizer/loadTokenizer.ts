import { readFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { EMBEDDED_MARK } from '../../support/files/embeddedMark.js';
import { ByteTokenizer } from './ByteTokenizer.js';
import type { HubOptions } from './hub/HubSettings.js';
import { inklingTokenizer, isInkling } from './tiktoken/inkling.js';
import { tokenizerFromFolder, TOKENIZER_FILES, tokenizerFromPaths } from './readFolder.js';
import type { Tokenizer } from './Tokenizer.js';
import { hubFile } from './hub/hubFile.js';
import { KIMI_REVISIONS } from './tiktoken/kimi.js';

const registered = new Map<string, () => Tokenizer | Promise<Tokenizer>>();
const loaded = new Map<string, Promise<Tokenizer>>();

/**
 * Registers a custom tokenizer under a name that {@link loadTokenizer} and everything above it knows. Returns a function that removes it.
 */
export function registerTokenizer(id: string, create: () => Tokenizer | Promise<Tokenizer>): () => void {
  registered.set(id, create);
  return () => {
    if (registered.get(id) === create) registered.delete(id);
  };
}

/**
 * The tokenizer of a Hugging Face repository, of a folder, of the embedded service's models (`tinker-rx/…`) or of Inkling
 * (`thinkingmachines/…`), made once per id and revision.
 *
 * Rejects with a `TokenizerError` that says what to do where it cannot be had; the next call tries again.
 */
export async function loadTokenizer(id: string, options: HubOptions = {}): Promise<Tokenizer> {
  if (isNamed(id)) return named(id, options);
  const isPath = await stat(id).then(
    () => true,
    () => false,
  );
  return isPath ? once(`path ${id}`, () => tokenizerFromFolder(id)) : named(id, options);
}

/**
 * The tokenizer of a model, by the service's rules; `tokenizerId` is what `getInfo` says, if it says. Unlike {@link loadTokenizer} it reads no
 * paths: what a server answers must not name files of this machine. The exception is a folder that an embedded service wrote for this very
 * model. The byte models of that service are known by their name.
 *
 * @see tokenizerIdFor
 */
export async function tokenizerForModel(
  modelName: string,
  tokenizerId?: string,
  options: HubOptions = {},
): Promise<Tokenizer> {
  const isPath = tokenizerId !== undefined && isAbsolute(tokenizerId);
  if (isPath && !registered.has(modelName) && (await embeddedModel(tokenizerId)) === modelName)
    return once(`path ${tokenizerId}`, () => tokenizerFromFolder(tokenizerId, modelName));
  return named(modelName.startsWith(EMBEDDED) ? modelName : tokenizerIdFor(modelName, tokenizerId), options);
}

/** The model that an embedded service wrote a folder for; undefined for any other folder. */
async function embeddedModel(folder: string): Promise<string | undefined> {
  try {
    return await readFile(join(folder, EMBEDDED_MARK), 'utf8');
  } catch {
    return undefined;
  }
}

const EMBEDDED = 'tinker-rx/';
const isNamed = (id: string): boolean => registered.has(id) || id.startsWith(EMBEDDED) || isInkling(id);

function named(id: string, options: HubOptions): Tokenizer | Promise<Tokenizer> {
  const create = registered.get(id);
  if (create !== undefined) return create();
  const key = JSON.stringify([id, options.revision, options.endpoint, options.cacheFolder]);
  return once(key, () => {
    if (id.startsWith(EMBEDDED)) return Promise.resolve(new ByteTokenizer(id));
    return isInkling(id) ? inklingTokenizer(id) : tokenizerFromHub(id, options);
  });
}

/** What was made under a key before, or is being made; a failure is forgotten. */
function once(key: string, make: () => Promise<Tokenizer>): Promise<Tokenizer> {
  const known = loaded.get(key);
  if (known !== undefined) return known;
  const making = make();
  loaded.set(key, making);
  making.catch(() => loaded.delete(key));
  return making;
}

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

const LLAMA3 = 'thinkingmachineslabinc/meta-llama-3-instruct-tokenizer';

/** Repositories served under a second name that has no tokenizer. */
const ALIASES: Readonly<Record<string, string>> = { 'moonshotai/Kimi-K2.5-Text-Only': 'moonshotai/Kimi-K2.5' };

const withoutSuffix = (name: string): string => name.split(':', 1)[0] ?? name;

/**
 * Which tokenizer a model uses, by the rules of the service's own SDK.
 *
 * The id that `getInfo` gives wins; without one it follows from the model's name: a `:suffix` is dropped, every Llama 3 shares one ungated
 * repository, and `org/model/variant` reads as `org/model`.
 */
export function tokenizerIdFor(modelName: string, tokenizerId?: string): string {
  const id = tokenizerId === undefined ? idFromName(withoutSuffix(modelName)) : withoutSuffix(tokenizerId);
  return ALIASES[id] ?? id;
}

function idFromName(name: string): string {
  if (name.startsWith('meta-llama/Llama-3')) return LLAMA3;
  const parts = name.split('/');
  return parts.length === 3 ? parts.slice(0, 2).join('/') : name;
}
