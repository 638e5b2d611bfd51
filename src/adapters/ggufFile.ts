import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { decodeFloats } from '../support/files/floats.js';
import { ggufName, interleaveHalves, isInterleaved } from '../support/files/gguf/names.js';
import { encodeTensor, type WrittenType } from '../support/files/gguf/quantize.js';
import { ropeFactors, ROPE_FREQUENCIES, type Llama3Scaling } from '../support/files/gguf/readConfig.js';
import { writeGguf, type GgufTensorToWrite } from '../support/files/gguf/writeGguf.js';
import { SafetensorsFile } from '../support/files/safetensors.js';
import { ValidationError } from '../wire/tinkerError.js';
import { openBaseModel } from './baseModel.js';
import { ggufMetadata, ropeOf, type ModelFiles, type TokenizerJson } from './ggufMetadata.js';

/** How the matrices of a GGUF file are stored. */
export const GGUF_TYPES = ['f16', 'q8_0'] as const;
/** How the matrices of a GGUF file are stored: 2 bytes a weight, or a little more than 1. */
export type GgufType = (typeof GGUF_TYPES)[number];

/** `general.file_type`, as llama.cpp counts them. */
const FILE_TYPES: Readonly<Record<GgufType, number>> = { f16: 1, q8_0: 7 };

/** Writes a model's folder as a GGUF file for llama.cpp and what is built on it. Of the weights, one tensor is held at a time. Gives its size in bytes. */
export async function writeGgufFile(
  folder: string,
  output: string,
  type: GgufType,
  onTensor?: (number: number, of: number) => void,
): Promise<number> {
  const model = await openBaseModel(folder);
  const files = await readFiles(folder, model.config);
  const metadata = ggufMetadata(files, basename(output).replace(/\.gguf$/i, ''), FILE_TYPES[type]);
  const shards = new Map<string, SafetensorsFile>();
  try {
    for (const shard of model.shards) shards.set(shard, await SafetensorsFile.open(join(folder, shard)));
    const tied = model.config['tie_word_embeddings'] === true;
    const names = [...model.shardOf.keys()].filter((name) => !(tied && name === 'lm_head.weight')).sort();
    const tensors = names.map((name) => tensorOf(shards.get(model.shardOf.get(name)!)!, name, type, model.config));
    const all = [...tensors, ...ropeTensor(model.config)];
    return await writeGguf(
      output,
      metadata,
      all.map((tensor, index) => ({
        ...tensor,
        bytes: () => {
          onTensor?.(index + 1, all.length);
          return tensor.bytes();
        },
      })),
    );
  } finally {
    await Promise.all([...shards.values()].map((file) => file.close()));
  }
}

function tensorOf(
  file: SafetensorsFile,
  name: string,
  type: GgufType,
  config: Readonly<Record<string, unknown>>,
): GgufTensorToWrite {
  const { shape, dtype, start, end } = file.header.tensors.get(name)!;
  const stored = ggufName(name);
  if (stored === undefined) throw new ValidationError(`${name} has no place in a GGUF file of this architecture`);
  const isWhole = shape.at(-1)! % 32 === 0;
  const written: WrittenType = shape.length === 1 ? 'F32' : type === 'q8_0' && isWhole ? 'Q8_0' : 'F16';
  const turned = config['model_type'] === 'llama' && isInterleaved(name);
  return {
    name: stored,
    type: written,
    shape,
    bytes: async () => {
      const values = decodeFloats(await file.read(start, end - start), dtype, name);
      const heads = Number(config['num_attention_heads']);
      const headWidth = Number(config['head_dim'] ?? Number(config['hidden_size']) / heads);
      return encodeTensor(turned ? interleaveHalves(values, shape[1]!, headWidth) : values, written);
    },
  };
}

/** Llama 3's stretching of the rotary frequencies is a separate tensor. */
function ropeTensor(config: Readonly<Record<string, unknown>>): readonly GgufTensorToWrite[] {
  const { base, scaling } = ropeOf(config);
  if (scaling === undefined) return [];
  const headWidth = Number(config['head_dim'] ?? Number(config['hidden_size']) / Number(config['num_attention_heads']));
  const factors = ropeFactors(scaling as unknown as Llama3Scaling, headWidth, base);
  return [
    {
      name: ROPE_FREQUENCIES,
      type: 'F32',
      shape: [factors.length],
      bytes: () => Promise.resolve(encodeTensor(factors, 'F32')),
    },
  ];
}

async function readFiles(folder: string, config: ModelFiles['config']): Promise<ModelFiles> {
  const text = (name: string) => readFile(join(folder, name), 'utf8').catch(() => undefined);
  const [tokenizer, settings = '{}', template] = await Promise.all(
    ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'].map(text),
  );
  if (tokenizer === undefined) throw new ValidationError(`${folder} has no tokenizer.json, which a GGUF file needs`);
  const tokenizerConfig = JSON.parse(settings) as Record<string, unknown>;
  const inside = tokenizerConfig['chat_template'];
  return {
    config,
    tokenizer: JSON.parse(tokenizer) as TokenizerJson,
    tokenizerConfig,
    chatTemplate: template ?? (typeof inside === 'string' ? inside : undefined),
  };
}
