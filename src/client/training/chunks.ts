import type { PreparedDatum } from '../../wire/datum.js';
import { estimateDatumBytes } from '../../wire/estimateBytes.js';

export interface Chunk {
  readonly data: readonly PreparedDatum[];
  readonly bytes: number;
}

export interface ChunkLimits {
  readonly maxLength: number;
  readonly maxBytes: number;
}

/** Cuts data into requests of bounded length and size. A datum that is too large for any is a chunk of its own. */
export function toChunks(data: readonly PreparedDatum[], { maxLength, maxBytes }: ChunkLimits): Chunk[] {
  const chunks: { data: PreparedDatum[]; bytes: number }[] = [];
  let current: { data: PreparedDatum[]; bytes: number } | undefined;
  for (const datum of data) {
    const bytes = estimateDatumBytes(datum);
    if (current === undefined || current.data.length === maxLength || current.bytes + bytes > maxBytes) {
      current = { data: [], bytes: 0 };
      chunks.push(current);
    }
    current.data.push(datum);
    current.bytes += bytes;
  }
  return chunks;
}
