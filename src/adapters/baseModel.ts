import { existsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EnvHttpProxyAgent, fetch, type Response } from 'undici';
import { hubFile } from '../chat/tokenizer/hub/hubFile.js';
import { HubSettings } from '../chat/tokenizer/hub/HubSettings.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { BaseFacts } from './modelFamily.js';
import type { ReadRange } from '../support/files/readRange.js';
import { DamagedFileError, readHeader, SafetensorsFile, type SafetensorsHeader } from '../support/files/safetensors.js';

const INDEX = 'model.safetensors.index.json';
const SINGLE = 'model.safetensors';

/** A base model in a folder, or in a repository of the Hugging Face hub. */
export interface BaseModel extends BaseFacts {
  /** As it was named. */
  readonly name: string;
  /** Files with weights, in order. */
  readonly shards: readonly string[];
  /** Which file each tensor is in. */
  readonly shardOf: ReadonlyMap<string, string>;
  /** The index, as it is in its file; undefined for a model of one file. */
  readonly index: Readonly<Record<string, unknown>> | undefined;
  /** A file on this machine, fetched into the cache of the hub if need be; undefined if the model has none. */
  readonly file: (name: string) => Promise<string | undefined>;
  /** Header of a file with weights. Of a repository only the header is fetched. */
  readonly header: (shard: string) => Promise<SafetensorsHeader>;
}

/** Whether words name a folder rather than a repository. */
export const isFolder = (name: string): boolean => existsSync(name) && statSync(name).isDirectory();

/** The repository that a base model of the service is, without what only the service knows: `:suffix`, `/variant`. */
export const repositoryOf = (baseModel: string): string => baseModel.split(':', 1)[0]!.split('/').slice(0, 2).join('/');

/** Models of the embedded service are in no repository. The names in their adapters are those of a plain model. */
const EMBEDDED = 'tinker-rx/';

function embedded(name: string): BaseModel {
  return {
    name,
    config: { model_type: 'tinker-rx' },
    keys: new Set(['lm_head.weight']),
    shards: [],
    shardOf: new Map(),
    index: undefined,
    file: () => Promise.resolve(undefined),
    header: () => Promise.reject(absent(name, 'it is a model of the embedded service, which only that service runs')),
  };
}

/** Opens a file of weights. @throws ValidationError naming the file if it is damaged */
export const openWeights = (path: string): Promise<SafetensorsFile> =>
  SafetensorsFile.open(path).catch((error: unknown) => {
    if (!(error instanceof DamagedFileError)) throw error;
    throw new ValidationError(`${error.message}\nDownload it again, or save the weights once more.`, { cause: error });
  });

/** Opens a base model. Weights are not read. @throws ValidationError if there is no such model */
export async function openBaseModel(name: string): Promise<BaseModel> {
  if (name.startsWith(EMBEDDED)) return embedded(name);
  const file = isFolder(name)
    ? (part: string) => Promise.resolve(existsSync(join(name, part)) ? join(name, part) : undefined)
    : (part: string) =>
        hubFile(name, part).catch((error: unknown) => Promise.reject(absent(name, (error as Error).message)));
  const config = await file('config.json');
  if (config === undefined) throw absent(name, 'it has no config.json');
  const header = async (shard: string): Promise<SafetensorsHeader> => {
    if (!isFolder(name)) return hubHeader(name, shard);
    const opened = await openWeights(join(name, shard));
    await opened.close();
    return opened.header;
  };
  const indexFile = await file(INDEX);
  const index = indexFile === undefined ? undefined : await readJson(indexFile);
  const entries =
    index === undefined
      ? [...(await header(SINGLE)).tensors.keys()].map((key) => [key, SINGLE] as const)
      : Object.entries(index['weight_map'] as Record<string, string>);
  const shardOf = new Map(entries);
  const shards = [...new Set(shardOf.values())].sort();
  return { name, config: await readJson(config), keys: new Set(shardOf.keys()), shards, shardOf, index, file, header };
}

const absent = (name: string, why: string) =>
  new ValidationError(
    `Cannot read the base model ${name}: ${why}\nSay where it is: a folder, or a repository on the Hugging Face hub (for the command: --base).`,
  );

const readJson = async (path: string): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;

async function hubHeader(repository: string, shard: string): Promise<SafetensorsHeader> {
  const settings = new HubSettings();
  const url = `${settings.endpoint}/${repository}/resolve/main/${shard}`;
  const dispatcher = new EnvHttpProxyAgent();
  try {
    const read: ReadRange = async (start, length) => {
      const headers = { ...settings.headersFor(url), range: `bytes=${start}-${start + length - 1}` };
      const response = await fetch(url, { headers, dispatcher });
      if (response.status !== 206 && response.status !== 200) {
        await response.body?.cancel();
        throw absent(repository, `HTTP ${response.status} for ${shard}`);
      }
      // A server that knows no ranges sends everything from the start.
      return firstBytes(response, response.status === 206 ? 0 : start, length);
    };
    return await readHeader(read, `${repository}/${shard}`);
  } finally {
    await dispatcher.destroy();
  }
}

/** `length` bytes of an answer from `skip` on; the rest is not waited for. */
async function firstBytes(response: Response, skip: number, length: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let have = 0;
  for await (const chunk of response.body! as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    have += chunk.length;
    if (have >= skip + length) break;
  }
  return new Uint8Array(Buffer.concat(chunks).subarray(skip, skip + length));
}
