import { copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { isFolder, openBaseModel, openWeights, type BaseModel } from './baseModel.js';
import { readAdapterConfig } from './exportPeft.js';
import { loraModules } from './loraModules.js';
import { mergeTensor } from './mergeTensor.js';
import { modelFamily, type ModelFamily } from './modelFamily.js';
import { planMerge, type MergePlan } from './planMerge.js';
import type { SafetensorsFile, TensorPlace } from '../support/files/safetensors.js';
import { copyRange, writeSafetensors, type TensorToWrite } from '../support/files/writeSafetensors.js';

/** What {@link mergeModel} reads and writes. */
export interface MergeModelOptions {
  /** Folder of the adapter as the service exports it. */
  readonly adapter: string;
  /** Folder or repository of the base model. */
  readonly base: string;
  /** Folder to make. It appears when it is complete. */
  readonly output: string;
  /** Told before each file of weights. */
  readonly onShard?: (shard: string, number: number, of: number) => void;
}

/** A model that {@link mergeModel} wrote. */
export interface MergedModel {
  /** How many files of weights it has. */
  readonly shards: number;
  /** Size of all of them. */
  readonly bytes: number;
  /** Tensors that were changed. */
  readonly changed: number;
  /** The output matrix was shared with the embeddings and is a separate tensor now. */
  readonly untied: boolean;
}

/** Files beside the weights that a server of the model needs. */
const BESIDE =
  /^(generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template|preprocessor_config|processor_config|video_preprocessor_config)\.json$|^(merges\.txt|tokenizer\.model|tiktoken\.model|chat_template\.jinja|.*\.py|LICENSE.*)$/;
const BESIDE_ON_HUB = [
  ...['generation_config', 'tokenizer', 'tokenizer_config', 'special_tokens_map', 'added_tokens', 'vocab'],
  ...['chat_template', 'preprocessor_config', 'processor_config', 'video_preprocessor_config'],
].map((name) => `${name}.json`);

/** Writes the base model with an adapter added to its weights, one file after another. Of a file, a few rows are held at a time. */
export async function mergeModel({ adapter, base, output, onShard }: MergeModelOptions): Promise<MergedModel> {
  const settings = await readAdapterConfig(adapter);
  const model = await openBaseModel(base);
  if (model.shards.length === 0) await model.header('weights');
  const family = modelFamily(model);
  const file = await openWeights(join(adapter, 'adapter_model.safetensors'));
  const partial = `${output}.partial`;
  try {
    const places = await placesOf(model);
    const shapeOf = (name: string) =>
      places.get(name)?.shape ?? (isNewHead(name, family) ? places.get(family.embeddings)?.shape : undefined);
    const plan = planMerge(loraModules(file.header), family, shapeOf);
    const untied = [...plan.keys()].some((name) => isNewHead(name, family));
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    const job = { model, family, plan, adapter: file, scale: settings.lora_alpha / settings.r, folder: partial };
    let bytes = 0;
    for (const [i, shard] of model.shards.entries()) {
      onShard?.(shard, i + 1, model.shards.length);
      bytes += await mergeShard(job, shard);
    }
    await writeBeside(model, family, partial, untied);
    await rename(partial, output);
    return { shards: model.shards.length, bytes, changed: plan.size, untied };
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  } finally {
    await file.close();
  }
}

const isNewHead = (name: string, { tiedHead, head }: ModelFamily): boolean => tiedHead && name === `${head}.weight`;

async function placesOf({ shards, header }: BaseModel): Promise<ReadonlyMap<string, TensorPlace>> {
  const headers = [];
  for (const shard of shards) headers.push(...(await header(shard)).tensors);
  return new Map(headers);
}

interface Job {
  readonly model: BaseModel;
  readonly family: ModelFamily;
  readonly plan: MergePlan;
  readonly adapter: SafetensorsFile;
  readonly scale: number;
  readonly folder: string;
}

/** Writes one file of weights; gives its size. */
async function mergeShard({ model, family, plan, adapter, scale, folder }: Job, shard: string): Promise<number> {
  const source = await model.file(shard);
  if (source === undefined) throw new Error(`${model.name} has no ${shard}`);
  const file = await openWeights(source);
  try {
    const inOrder = [...file.header.tensors].sort(([, one], [, other]) => one.start - other.start);
    const write = (name: string, place: TensorPlace): TensorToWrite => {
      const additions = plan.get(name);
      const { dtype, shape, start, end } = place;
      const bytes =
        additions === undefined
          ? () => copyRange(file, place)
          : () => mergeTensor(file, name, place, adapter, additions, scale);
      return { name, dtype, shape, byteLength: end - start, bytes };
    };
    const tensors = inOrder.flatMap(([name, place]) => {
      const head = `${family.head}.weight`;
      // A tied output matrix becomes a separate tensor: the output was trained, not the embeddings.
      const untied = name === family.embeddings && isNewHead(head, family) && plan.has(head);
      return untied ? [write(name, place), write(head, place)] : [write(name, place)];
    });
    await mkdir(dirname(join(folder, shard)), { recursive: true });
    return await writeSafetensors(join(folder, shard), tensors, file.header.metadata);
  } finally {
    await file.close();
  }
}

async function writeBeside(model: BaseModel, family: ModelFamily, folder: string, untied: boolean): Promise<void> {
  const json = (name: string, value: object) =>
    writeFile(join(folder, name), `${JSON.stringify(value, undefined, 2)}\n`);
  const { text_config: inner } = model.config as { readonly text_config?: object };
  const tied = {
    tie_word_embeddings: false,
    ...(inner === undefined ? {} : { text_config: { ...inner, tie_word_embeddings: false } }),
  };
  await json('config.json', untied ? { ...model.config, ...tied } : model.config);
  if (model.index !== undefined) {
    const map = model.index['weight_map'] as Record<string, string>;
    const more = untied ? { [`${family.head}.weight`]: map[family.embeddings] } : {};
    await json('model.safetensors.index.json', { ...model.index, weight_map: { ...map, ...more } });
  }
  const names = isFolder(model.name)
    ? (await readdir(model.name)).filter((name) => BESIDE.test(name))
    : [...BESIDE_ON_HUB, 'merges.txt', 'tokenizer.model', 'tiktoken.model', 'chat_template.jinja'];
  for (const name of names) {
    const path = await model.file(name);
    if (path !== undefined) await copyFile(path, join(folder, name), constants.COPYFILE_FICLONE);
  }
}
