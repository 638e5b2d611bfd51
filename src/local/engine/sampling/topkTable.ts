import { largest } from './chooseToken.js';
import type { LogitRow } from './logitRow.js';
import type { TopkTable } from '../types.js';

/** The service's mark for a cell without a logprob. */
const EMPTY_LOGPROB = -99_999;

/** An empty table of `length` rows. */
export function createTopkTable(length: number, k: number): TopkTable {
  return {
    tokenIds: new Int32Array(length * k),
    logprobs: new Float32Array(length * k).fill(EMPTY_LOGPROB),
    k,
    length,
  };
}

/** Writes the k most likely tokens of a row of logits, most likely first. */
export function fillTopkRow(table: TopkTable, row: number, { logits, total }: LogitRow): void {
  largest(logits, table.k).forEach((id, rank) => {
    table.tokenIds[row * table.k + rank] = id;
    table.logprobs[row * table.k + rank] = logits[id]! - total;
  });
}

/** The first `length` rows. */
export function shortenTopkTable(table: TopkTable, length: number): TopkTable {
  const size = length * table.k;
  return { tokenIds: table.tokenIds.slice(0, size), logprobs: table.logprobs.slice(0, size), k: table.k, length };
}
