import { stat } from 'node:fs/promises';
import { ByteTokenizer } from './ByteTokenizer.js';
import type { HubOptions } from './hub/HubSettings.js';
import { inklingTokenizer, isInkling } from './tiktoken/inkling.js';
import { tokenizerFromFolder } from './readFolder.js';
import type { Tokenizer } from './Tokenizer.js';
import { tokenizerFromHub } from './tokenizerFromHub.js';
import { tokenizerIdFor } from './tokenizerIdFor.js';

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
 * paths: what a server answers must not name files of this machine. An embedded model is known by its name; its id is a folder, for Python.
 *
 * @see tokenizerIdFor
 */
export async function tokenizerForModel(
  modelName: string,
  tokenizerId?: string,
  options: HubOptions = {},
): Promise<Tokenizer> {
  return named(modelName.startsWith(EMBEDDED) ? modelName : tokenizerIdFor(modelName, tokenizerId), options);
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
