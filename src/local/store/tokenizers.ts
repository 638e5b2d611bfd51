import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EMBEDDED_MARK } from '../../support/files/embeddedMark.js';
import { replaceFile } from '../../support/files/writeAtomically.js';
import { HttpError } from '../http/httpError.js';
import type { OpenedModel } from '../weights/OpenedModel.js';
import { writeTokenizer } from './tokenizerFiles.js';

/** Tokenizers of the base models as folders that `transformers` and this package's own client read. */
export class Tokenizers {
  readonly #files: ReadonlyMap<string, OpenedModel['tokenizerFiles']>;
  readonly #written = new Map<string, Promise<string>>();

  constructor(
    private readonly root: string,
    models: readonly Pick<OpenedModel, 'shape' | 'tokenizerFiles'>[],
  ) {
    this.#files = new Map(models.map(({ shape, tokenizerFiles }) => [shape.name, tokenizerFiles]));
  }

  /** Whether a model brought its own tokenizer. The others have one token for each byte. */
  isOpened(model: string): boolean {
    return this.#files.has(model);
  }

  /** The folder of a model's tokenizer; written when it is first asked for. @throws HttpError 404 if the model has none */
  async folder(model: string): Promise<string> {
    const files = this.#files.get(model);
    const key = files === undefined ? '' : model;
    const known = this.#written.get(key);
    if (known !== undefined) return known;
    if (files !== undefined && Object.keys(files).length === 0)
      throw new HttpError(404, `${model} came without a tokenizer.json`);
    const writing = files === undefined ? writeTokenizer(this.root) : this.#write(model, files);
    this.#written.set(key, writing);
    writing.catch(() => this.#written.delete(key));
    return writing;
  }

  async #write(model: string, files: OpenedModel['tokenizerFiles']): Promise<string> {
    const folder = join(this.root, model.replaceAll(/[^A-Za-z0-9._-]+/g, '--'));
    await mkdir(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) await replaceFile(join(folder, name), text);
    await replaceFile(join(folder, EMBEDDED_MARK), model);
    return folder;
  }
}
