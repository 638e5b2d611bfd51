import { ModelFields } from '../ModelFields.js';
import { GgufFile } from './GgufFile.js';
import { ggufName, huggingFaceName, isInterleaved, separateHalves } from './names.js';
import { readGgufConfig } from './readConfig.js';
import { readGgufTokenizer } from './readTokenizer.js';

/** A GGUF file seen as a model of Hugging Face: its `config.json`, the files of its tokenizer, and tensors by the names they have there. */
export class GgufModel {
  private constructor(
    readonly path: string,
    readonly config: Readonly<Record<string, unknown>>,
    readonly tokenizerFiles: Readonly<Record<string, string>>,
    private readonly file: GgufFile,
  ) {}

  /** @throws Error naming the file, and the field or the tensor, for what cannot be read */
  static async open(path: string): Promise<GgufModel> {
    const file = await GgufFile.open(path);
    try {
      const config = await readGgufConfig(file);
      const fields = new ModelFields(path, (field) => file.header.metadata.get(field));
      return new GgufModel(path, config, readGgufTokenizer(fields), file);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Who made the model, if the file says it in one word. */
  get organization(): string | undefined {
    const organization = this.file.header.metadata.get('general.organization');
    return typeof organization === 'string' && /^[\w.-]+$/.test(organization) ? organization : undefined;
  }

  /** Names of all tensors that the model has at Hugging Face. */
  get names(): readonly string[] {
    return [...this.file.header.tensors.keys()].map(huggingFaceName).filter((name) => name !== undefined);
  }

  /** Shape and type of a tensor; undefined if the file has none of that name. */
  find(name: string): { readonly shape: readonly number[]; readonly type: string } | undefined {
    return this.file.header.tensors.get(ggufName(name) ?? '');
  }

  /** Values of a tensor, exactly what Python's `gguf` makes of it, with rows in the order of Hugging Face. */
  async values(name: string): Promise<Float32Array> {
    const stored = ggufName(name) ?? name;
    const place = this.file.header.tensors.get(stored);
    if (place === undefined) throw new Error(`${this.path} has no tensor ${stored}`);
    const values = await this.file.values(stored, place);
    if (this.config['model_type'] !== 'llama' || !isInterleaved(name)) return values;
    return separateHalves(values, place.shape[1]!, this.config['head_dim'] as number);
  }

  close(): Promise<void> {
    return this.file.close();
  }
}
