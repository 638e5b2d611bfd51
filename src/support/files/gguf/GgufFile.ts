import { openRanges, type RangeFile } from '../readRange.js';
import { NeedsMoreBytes, parseGgufHeader, type GgufHeader, type GgufTensor } from './header.js';
import { isReadable, TENSOR_TYPES } from './tensorTypes.js';

const FIRST_BYTES = 4 * 1024 * 1024;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** A GGUF file that is open: its header was read, its tensors are read when asked for. */
export class GgufFile {
  private constructor(
    readonly header: GgufHeader,
    private readonly file: RangeFile,
  ) {}

  /** @throws Error if the file is damaged, cut short, or of another version; it names the tensor or the field */
  static async open(path: string): Promise<GgufFile> {
    const file = await openRanges(path);
    try {
      const header = await readHeader(file);
      for (const [name, { end }] of header.tensors)
        if (end !== undefined && end > file.size)
          throw new Error(`${path} is cut short: ${name} ends at byte ${end} of ${file.size}`);
      return new GgufFile(header, file);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get path(): string {
    return this.file.path;
  }

  /** The bytes of a tensor as they are stored. */
  async bytes(name: string, { type, start, end }: GgufTensor): Promise<Uint8Array> {
    if (end === undefined) throw unreadable(this.path, name, type);
    return this.file.read(start, end - start);
  }

  /** The values of a tensor, whatever it is stored as. Beside them, a few megabytes are held. */
  async values(name: string, { type, shape, start, end }: GgufTensor): Promise<Float32Array> {
    if (!isReadable(type) || end === undefined) throw unreadable(this.path, name, type);
    const { elements, bytes, decode } = TENSOR_TYPES[type];
    const values = new Float32Array(shape.reduce((size, dimension) => size * dimension, 1));
    const chunk = Math.floor(CHUNK_BYTES / bytes) * bytes;
    for (let at = start; at < end; at += chunk) {
      const blocks = await this.file.read(at, Math.min(chunk, end - at));
      const first = ((at - start) / bytes) * elements;
      decode(blocks, values.subarray(first, first + (blocks.length / bytes) * elements));
    }
    return values;
  }

  close(): Promise<void> {
    return this.file.close();
  }
}

const unreadable = (path: string, name: string, type: string): Error =>
  new Error(`${path}: ${name} is stored as ${type}. Read here: ${Object.keys(TENSOR_TYPES).join(', ')}`);

/** The length of the header is not written anywhere: more is read until it fits. */
async function readHeader({ path, size, read }: RangeFile): Promise<GgufHeader> {
  for (let length = FIRST_BYTES; ; length *= 4) {
    try {
      return parseGgufHeader(await read(0, Math.min(length, size)), path);
    } catch (error) {
      if (!(error instanceof NeedsMoreBytes)) throw error;
      if (length >= size) throw new Error(`${path} is cut short: it ends within its header`, { cause: error });
    }
  }
}
