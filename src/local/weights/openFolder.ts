import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../support/isRecord.js';
import { decodeFloats } from '../../support/files/floats.js';
import { SafetensorsFile } from '../../support/files/safetensors.js';
import type { OpenedModel, StoredTensor } from './OpenedModel.js';
import { endTokensOf, shapeOfConfig } from './shapeOfConfig.js';

const INDEX = 'model.safetensors.index.json';
const SINGLE = 'model.safetensors';
/** Read as they are, where they exist. */
const TOKENIZER_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'chat_template.jinja',
  'vocab.json',
  'merges.txt',
];

/** Opens a model in a folder as Hugging Face lays it out: `config.json`, and safetensors in one file or several. */
export async function openFolder(folder: string, name: string): Promise<OpenedModel> {
  const configPath = join(folder, 'config.json');
  const config = await readJson(configPath);
  if (config === undefined) throw new Error(`${folder} has no config.json: it is not a model of Hugging Face`);
  const shape = shapeOfConfig(config, configPath, name);
  const generation = await readJson(join(folder, 'generation_config.json'));
  const files = await openShards(folder);
  return {
    shape,
    endTokens: endTokensOf({ ...config, ...generation }),
    tensorShape: (tensor) => files.get(tensor)?.header.tensors.get(tensor)?.shape,
    tensor: (tensor) => readTensor(files.get(tensor), tensor, folder),
    tokenizerFiles: await readTexts(folder, TOKENIZER_FILES),
    close: async () => {
      await Promise.all([...new Set(files.values())].map((file) => file.close()));
    },
  };
}

/** The file of each tensor. */
async function openShards(folder: string): Promise<ReadonlyMap<string, SafetensorsFile>> {
  const index = await readJson(join(folder, INDEX));
  const map = index?.['weight_map'];
  if (index !== undefined && !isRecord(map)) throw new Error(`${join(folder, INDEX)} has no weight_map`);
  const names = isRecord(map) ? [...new Set(Object.values(map).map(String))] : [SINGLE];
  const opened: SafetensorsFile[] = [];
  try {
    for (const name of names) {
      // A name of the index must not lead out of the folder.
      if (/[/\\]/.test(name)) throw new Error(`${join(folder, INDEX)} names the file ${name}`);
      opened.push(await SafetensorsFile.open(join(folder, name)));
    }
  } catch (error) {
    await Promise.all(opened.map((file) => file.close()));
    throw error;
  }
  return new Map(opened.flatMap((file) => [...file.header.tensors.keys()].map((tensor) => [tensor, file] as const)));
}

async function readTensor(file: SafetensorsFile | undefined, name: string, folder: string): Promise<StoredTensor> {
  const place = file?.header.tensors.get(name);
  if (file === undefined || place === undefined) throw new Error(`${folder} has no tensor ${name}`);
  const { dtype, shape, start, end } = place;
  const bytes = await file.read(start, end - start);
  if (dtype === 'BF16') return { shape, dtype: 'bf16', data: new Uint16Array(bytes.buffer, 0, bytes.length / 2) };
  return { shape, dtype: 'f32', data: decodeFloats(bytes, dtype, `${file.path}: ${name}`) };
}

async function readTexts(folder: string, names: readonly string[]): Promise<Record<string, string>> {
  const texts = await Promise.all(names.map(async (name) => [name, await readIfThere(join(folder, name))] as const));
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

async function readJson(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${path} is not JSON`, { cause });
  }
  if (!isRecord(value)) throw new Error(`${path} is not an object`);
  return value;
}
