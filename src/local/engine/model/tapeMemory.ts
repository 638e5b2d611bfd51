import { attentionWidths, LAYER_LINEARS, type ModelShape } from './shapes.js';

/** Floats of a row that a layer keeps for the backward pass. */
function keptPerRow(shape: ModelShape, rank: number): number {
  const { width, hidden, heads, queryKeyNorms } = shape;
  const { queries, keys } = attentionWidths(shape);
  const raw = queryKeyNorms === true ? queries + keys + 2 * heads : 0;
  return 2 * width + 2 * queries + 2 * keys + 2 * hidden + raw + 2 + rank * LAYER_LINEARS.length;
}

/** How many layers of a pass over `rows` fit into a tape of `tapeFloats`; the others are computed again. */
export const layersKept = (shape: ModelShape, rank: number, rows: number, tapeFloats: number): number =>
  Math.min(shape.layers, Math.floor(tapeFloats / (rows * keptPerRow(shape, rank))));

/** About the floats that a pass with a tape takes: every layer's input, what is kept, and the work on one layer both ways. */
export function passFloats(shape: ModelShape, rank: number, rows: number, tapeFloats: number): number {
  const { width, hidden, layers, vocabulary } = shape;
  const kept = layersKept(shape, rank, rows, tapeFloats);
  const perRow = (layers + 8) * width + (kept + 1) * keptPerRow(shape, rank) + 4 * hidden;
  return rows * perRow + Math.min(rows * vocabulary, Math.max(LOGITS_AT_ONCE, 16 * vocabulary));
}

/** Floats of logits that are held at once: [rows, vocabulary] of a few rows. */
const LOGITS_AT_ONCE = 1 << 23;

/** Rows whose logits are held at once. */
export const headRows = ({ vocabulary }: ModelShape): number =>
  Math.max(16, Math.floor(LOGITS_AT_ONCE / vocabulary) & ~15);
