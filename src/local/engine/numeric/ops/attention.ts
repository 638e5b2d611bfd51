/**
 * Causal attention. The rows of a pass are cut into runs: neighbouring rows of one sequence. A table of integers says of each run which
 * rows it has and where the keys and values of its sequence are; {@link RUN} names the columns.
 */
import type { Lane } from '../lane.js';
import { transpose } from '../transpose.js';

export const RUN = {
  row: 0,
  rows: 1,
  /** Position of its first row in the sequence. */
  start: 2,
  /** Keys of a head are transposed, [headWidth, positions]: where the first head's are, and the strides of rows and heads. */
  keys: 3,
  keysRow: 4,
  keysHead: 5,
  /** Values of a head, [positions, headWidth]. */
  values: 6,
  valuesRow: 7,
  valuesHead: 8,
  size: 9,
} as const;

/** Rows whose scores are held at once. */
const BLOCK = 64;

/** Floats of scratch memory that {@link attend} needs for sequences of up to `positions`. */
export const attendScratch = (rows: number, positions: number): number =>
  Math.min(BLOCK, rows) * ((positions + 3) & ~3);

/** Floats of scratch memory that {@link attendBackward} needs. */
export const attendBackwardScratch = (rows: number, headWidth: number): number =>
  2 * (headWidth + Math.min(BLOCK, rows)) * ((rows + 3) & ~3);

/** Softmax over the first `count` entries of a row; the rest up to `columns` become 0. */
function causalSoftmax({ floats, kernels }: Lane, row: number, count: number, columns: number, scale: number): void {
  const vectors = (count + 3) & ~3;
  floats.fill(-Infinity, row + count, row + vectors);
  kernels.softmax(row, vectors, scale);
  floats.fill(0, row + vectors, row + columns);
}

/** ds = p ∘ (dp − Σ p·dp) · scale, written over dp. */
function softmaxRowBackward(
  f: Float32Array,
  p: number,
  dp: number,
  count: number,
  padded: number,
  scale: number,
): void {
  let dot = 0;
  for (let i = 0; i < count; i++) dot += f[p + i]! * f[dp + i]!;
  for (let i = 0; i < count; i++) f[dp + i] = f[p + i]! * (f[dp + i]! - dot) * scale;
  for (let i = count; i < padded; i++) f[dp + i] = 0;
}

/** Puts the keys and values of the rows where their sequences keep them. A share is a range of heads, of each run in turn. */
export function remember(
  { floats: f, integers }: Lane,
  first: number,
  end: number,
  _scratch: number,
  runs: number,
  keyValueHeads: number,
  headWidth: number,
  k: number,
  v: number,
): void {
  const width = keyValueHeads * headWidth;
  for (let item = first; item < end; item++) {
    const run = runs + RUN.size * Math.floor(item / keyValueHeads);
    const head = item % keyValueHeads;
    const [row, rows, start] = [integers[run]!, integers[run + RUN.rows]!, integers[run + RUN.start]!];
    const at = row * width + head * headWidth;
    const keysRow = integers[run + RUN.keysRow]!;
    const keys = integers[run + RUN.keys]! + head * integers[run + RUN.keysHead]! + start;
    transpose(f, k + at, rows, headWidth, width, keys, keysRow);
    const valuesRow = integers[run + RUN.valuesRow]!;
    const values = integers[run + RUN.values]! + head * integers[run + RUN.valuesHead]! + start * valuesRow;
    if (values === v + at) continue;
    for (let i = 0; i < rows; i++) {
      f.copyWithin(values + i * valuesRow, v + at + i * width, v + at + i * width + headWidth);
    }
  }
}

/**
 * Attention of all rows to what their sequences have up to them. A share is a range of heads, of each run in turn. A row's result does not
 * depend on the run it is in: sums are in the order of the positions.
 */
export function attend(
  lane: Lane,
  first: number,
  end: number,
  scores: number,
  runs: number,
  heads: number,
  group: number,
  headWidth: number,
  q: number,
  out: number,
): void {
  const { kernels, integers } = lane;
  const width = heads * headWidth;
  const scale = 1 / Math.sqrt(headWidth);
  for (let item = first; item < end; item++) {
    const run = runs + RUN.size * Math.floor(item / heads);
    const head = item % heads;
    const shared = Math.floor(head / group);
    const [row, rows, start] = [integers[run]!, integers[run + RUN.rows]!, integers[run + RUN.start]!];
    const keys = integers[run + RUN.keys]! + shared * integers[run + RUN.keysHead]!;
    const values = integers[run + RUN.values]! + shared * integers[run + RUN.valuesHead]!;
    const [keysRow, valuesRow] = [integers[run + RUN.keysRow]!, integers[run + RUN.valuesRow]!];
    const padded = (start + rows + 3) & ~3;
    for (let from = 0; from < rows; from += BLOCK) {
      const count = Math.min(rows - from, BLOCK);
      const seen = start + from + count;
      const columns = (seen + 3) & ~3;
      const at = (row + from) * width + head * headWidth;
      kernels.gemm(count, columns, headWidth, q + at, width, 1, keys, keysRow, scores, padded, false);
      for (let i = 0; i < count; i++) causalSoftmax(lane, scores + i * padded, start + from + i + 1, columns, scale);
      kernels.gemm(count, headWidth, seen, scores, padded, 1, values, valuesRow, out + at, width, false);
    }
  }
}

/**
 * Gradients of q, k and v from that of the output, for one sequence from its start. The probabilities are computed again. A share is a
 * range of heads of keys and values.
 */
export function attendBackward(
  lane: Lane,
  first: number,
  end: number,
  scratch: number,
  rows: number,
  heads: number,
  group: number,
  headWidth: number,
  q: number,
  k: number,
  v: number,
  dOut: number,
  dq: number,
  dk: number,
  dv: number,
): void {
  const { kernels, floats: f } = lane;
  const width = heads * headWidth;
  const keysWidth = width / group;
  const scale = 1 / Math.sqrt(headWidth);
  const padded = (rows + 3) & ~3;
  const keys = scratch;
  const values = keys + headWidth * padded;
  const scores = values + headWidth * padded;
  const dScores = scores + Math.min(BLOCK, rows) * padded;
  for (let shared = first; shared < end; shared++) {
    const kv = shared * headWidth;
    transpose(f, k + kv, rows, headWidth, keysWidth, keys, padded);
    transpose(f, v + kv, rows, headWidth, keysWidth, values, padded);
    for (let row = 0; row < rows; row++) {
      const at = row * keysWidth + kv;
      f.fill(0, dk + at, dk + at + headWidth);
      f.fill(0, dv + at, dv + at + headWidth);
    }
    for (let head = shared * group; head < (shared + 1) * group; head++) {
      for (let from = 0; from < rows; from += BLOCK) {
        const to = Math.min(rows, from + BLOCK);
        const count = to - from;
        const columns = (to + 3) & ~3;
        const block = from * width + head * headWidth;
        const [qBlock, dBlock] = [q + block, dOut + block];
        kernels.gemm(count, columns, headWidth, qBlock, width, 1, keys, padded, scores, padded, false);
        kernels.gemm(count, columns, headWidth, dBlock, width, 1, values, padded, dScores, padded, false);
        for (let row = 0; row < count; row++) {
          const p = scores + row * padded;
          causalSoftmax(lane, p, from + row + 1, columns, scale);
          softmaxRowBackward(f, p, dScores + row * padded, from + row + 1, columns, scale);
        }
        kernels.gemm(to, headWidth, count, scores, 1, padded, dBlock, width, dv + kv, keysWidth, true);
        kernels.gemm(count, headWidth, to, dScores, padded, 1, k + kv, keysWidth, dq + block, width, false);
        kernels.gemm(to, headWidth, count, dScores, 1, padded, qBlock, width, dk + kv, keysWidth, true);
      }
    }
  }
}
