import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { baseTensors } from '../engine/model/shapes.js';
import type { OpenedModel } from './OpenedModel.js';
import { openFolder } from './openFolder.js';
import { openGguf } from './openGguf.js';
import { tokenBytes } from './tokenBytes.js';

/** A model on this machine. */
export interface ModelSource {
  /** A folder as Hugging Face lays it out, or a `.gguf` file. */
  readonly path: string;
  /** What clients call it. Default: the maker and the name that the file says, or the name of the folder or the file. */
  readonly name?: string | undefined;
}

/**
 * Opens a language model: reads its settings and what tensors it has, none of its weights.
 *
 * @throws Error naming the file, and the field or the tensor, if it is damaged or of a kind that the engine does not compute
 */
export async function openModel({ path, name }: ModelSource): Promise<OpenedModel> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new Error(`There is no folder or file ${path}`);
  const model = await (found.isDirectory() ? openFolder(path, name ?? nameOf(path)) : openGguf(path, name));
  try {
    checkTensors(model, path);
    const tokenizer = model.tokenizerFiles['tokenizer.json'];
    return { ...model, tokenBytes: tokenizer === undefined ? undefined : () => tokenBytes(tokenizer) };
  } catch (error) {
    await model.close();
    throw error;
  }
}

/** A folder in the cache of the hub has the name of its repository. */
function nameOf(folder: string): string {
  const repository = /models--([^/\\]+)--([^/\\]+)[/\\]snapshots[/\\][^/\\]+$/.exec(resolve(folder));
  return repository === null ? basename(resolve(folder)) : `${repository[1]}/${repository[2]}`;
}

function checkTensors({ shape, tensorShape }: OpenedModel, path: string): void {
  for (const { name, shape: expected } of baseTensors(shape)) {
    const found = tensorShape(name);
    if (found?.join() !== expected.join())
      throw new Error(
        `${path}: ${name} is ${found === undefined ? 'missing' : `[${found.join(', ')}]`}, not [${expected.join(', ')}]`,
      );
  }
}
