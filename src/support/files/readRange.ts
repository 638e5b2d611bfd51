import { open } from 'node:fs/promises';

/** Reads `length` bytes from `start` on, wherever the file is. Gives fewer where the file ends. */
export type ReadRange = (start: number, length: number) => Promise<Uint8Array>;

/** A file that is open for reading ranges of it. */
export interface RangeFile {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly read: ReadRange;
  readonly close: () => Promise<void>;
}

/** Opens a file for reading ranges of it. */
export async function openRanges(path: string): Promise<RangeFile> {
  const handle = await open(path);
  const read: ReadRange = async (start, length) => {
    const buffer = new Uint8Array(length);
    let have = 0;
    while (have < length) {
      const { bytesRead } = await handle.read(buffer, have, length - have, start + have);
      if (bytesRead === 0) break;
      have += bytesRead;
    }
    return buffer.subarray(0, have);
  };
  try {
    return { path, size: (await handle.stat()).size, read, close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}
