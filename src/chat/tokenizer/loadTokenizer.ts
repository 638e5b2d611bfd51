import { stat } from 'node:fs/promises';
import { ByteTokenizer } from './ByteTokenizer.js';
import type { HubOptions } from './hub/HubSettings.js';
import { inklingTokenizer, isInkling } from './inkling.js';
import { tokenizerFromFolder } from './readFolder.js';
import type { Tokenizer } from './Tokenizer.js';
import { tokenizerFromHub } from './tokenizerFromHub.js';
import { tokenizerIdFor } from './tokenizerIdFor.js';

const registered = new Map<string, () => Tokenizer | Promise<Tokenizer>>();
const loaded = new Map<string, Promise<Tokenizer>>();

/**
 * Gives a tokenizer of one's own a name that {@link loadTokenizer} and everything above it knows. Returns a function that takes it back.
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
export function loadTokenizer(id: string, options: HubOptions = {}): Promise<Tokenizer> {
  const create = registered.get(id);
  if (create !== undefined) return Promise.resolve().then(create);
  const key = JSON.stringify([id, options.revision, options.endpoint, options.cacheFolder]);
  const known = loaded.get(key);
  if (known !== undefined) return known;
  const loading = make(id, options);
  loaded.set(key, loading);
  loading.catch(() => loaded.delete(key));
  return loading;
}

/** The tokenizer of a model, by the service's rules; `tokenizerId` is what `getInfo` says, if it says. @see tokenizerIdFor */
export function tokenizerForModel(
  modelName: string,
  tokenizerId?: string,
  options: HubOptions = {},
): Promise<Tokenizer> {
  return loadTokenizer(tokenizerIdFor(modelName, tokenizerId), options);
}

async function make(id: string, options: HubOptions): Promise<Tokenizer> {
  if (id.startsWith('tinker-rx/')) return new ByteTokenizer(id);
  if (isInkling(id)) return inklingTokenizer(id);
  const isPath = await stat(id).then(
    () => true,
    () => false,
  );
  return isPath ? tokenizerFromFolder(id) : tokenizerFromHub(id, options);
}
