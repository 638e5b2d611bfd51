import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hubFile } from '../../chat/tokenizer/hub/hubFile.js';
import type { HubEvent } from '../../chat/tokenizer/hub/HubEvent.js';
import type { ModelSource } from './openModel.js';

const INDEX = 'model.safetensors.index.json';
const SINGLE = 'model.safetensors';
/** Fetched where the repository has them; the first one it must have. */
const FILES = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'chat_template.jinja',
];

/** Whether a text has the form of a repository of the Hugging Face hub: `owner/name`. */
export const isRepository = (text: string): boolean => /^\w[\w.-]*\/[\w.-]+$/.test(text);

/**
 * Brings the files of a model on the Hugging Face hub into the cache of the hub, as `HF_HOME`, `HF_TOKEN` and `HF_HUB_OFFLINE` say.
 *
 * @throws Error naming a file that the repository does not have; the hub's error if it refuses or cannot be reached
 */
export async function fetchModel(repository: string, onProgress?: (event: HubEvent) => void): Promise<ModelSource> {
  const fetch = (file: string) => hubFile(repository, file, onProgress === undefined ? {} : { onProgress });
  const [config] = await Promise.all(FILES.map(fetch));
  if (config === undefined) throw new Error(`${repository} has no config.json`);
  const index = await fetch(INDEX);
  for (const shard of index === undefined ? [SINGLE] : await shardsOf(index))
    if ((await fetch(shard)) === undefined) throw new Error(`${repository} has no ${shard}`);
  return { path: dirname(config), name: repository };
}

/** Whether the weights of a repository are in the cache already. */
export async function isFetched(repository: string): Promise<boolean> {
  const inCache = (file: string) =>
    hubFile(repository, file, { offline: true }).then(
      (path) => path !== undefined,
      () => false,
    );
  return (await inCache(SINGLE)) || (await inCache(INDEX));
}

async function shardsOf(index: string): Promise<readonly string[]> {
  const { weight_map: map = {} } = JSON.parse(await readFile(index, 'utf8')) as { weight_map?: Record<string, string> };
  return [...new Set(Object.values(map))].sort();
}
