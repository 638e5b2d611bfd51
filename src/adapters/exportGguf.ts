import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GgufModel } from '../support/files/gguf/GgufModel.js';
import { writeSafetensors, type TensorToWrite } from '../support/files/writeSafetensors.js';
import { writeGgufFile, type GgufType } from './ggufFile.js';
import { mergeModel } from './mergeModel.js';

/** What {@link exportGguf} reads and writes. */
export interface ExportGgufOptions {
  /** Folder of the adapter as the service exports it. */
  readonly adapter: string;
  /** Folder or repository of the base model, or a `.gguf` file. */
  readonly base: string;
  /** The file to make. It appears when it is complete. */
  readonly output: string;
  /** How matrices are stored. Default `f16`. */
  readonly type?: GgufType;
  /** Told what is being done. */
  readonly onProgress?: (what: string) => void;
}

/** A file that {@link exportGguf} wrote. */
export interface ExportedGguf {
  /** Its size. */
  readonly bytes: number;
  /** Tensors of the base model that the adapter changed. */
  readonly changed: number;
}

/** Writes the base model with an adapter added to its weights as a GGUF file, which llama.cpp, Ollama and LM Studio run. */
export async function exportGguf(options: ExportGgufOptions): Promise<ExportedGguf> {
  const { adapter, base, output, type = 'f16', onProgress } = options;
  const work = await mkdtemp(join(tmpdir(), 'tinker-rx-gguf-'));
  const partial = `${output}.partial`;
  try {
    const folder = isGguf(base) ? join(work, 'base') : base;
    if (isGguf(base)) {
      onProgress?.(`reading ${base}`);
      await unpackGguf(base, folder);
    }
    const merged = join(work, 'merged');
    const { changed } = await mergeModel({
      adapter,
      base: folder,
      output: merged,
      onShard: (shard, number, of) => onProgress?.(`merging ${shard} (${number} of ${of})`),
    });
    const bytes = await writeGgufFile(merged, partial, type, (number, of) =>
      onProgress?.(`writing tensor ${number} of ${of}`),
    );
    await rename(partial, output);
    return { bytes, changed };
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const isGguf = (base: string): boolean => /\.gguf$/i.test(base);

/** Writes a GGUF file as the folder of a model: float32, so that nothing is rounded. */
async function unpackGguf(path: string, folder: string): Promise<void> {
  const model = await GgufModel.open(path);
  try {
    await mkdir(folder);
    const tensors = model.names.map((name): TensorToWrite => {
      const { shape } = model.find(name)!;
      const byteLength = 4 * shape.reduce((size, dimension) => size * dimension, 1);
      return { name, dtype: 'F32', shape, byteLength, bytes: () => floatsOf(model, name) };
    });
    await writeSafetensors(join(folder, 'model.safetensors'), tensors, { format: 'pt' });
    await writeFile(join(folder, 'config.json'), JSON.stringify({ ...model.config, dtype: 'float32' }));
    for (const [name, text] of Object.entries(model.tokenizerFiles)) await writeFile(join(folder, name), text);
  } finally {
    await model.close();
  }
}

async function* floatsOf(model: GgufModel, name: string): AsyncGenerator<Uint8Array> {
  const { buffer, byteOffset, byteLength } = await model.values(name);
  yield new Uint8Array(buffer, byteOffset, byteLength);
}
