/** out[column, row] = in[row, column] · scale. */
export function transpose(
  f: Float32Array,
  from: number,
  rows: number,
  columns: number,
  fromRow: number,
  out: number,
  outRow: number,
  scale = 1,
): void {
  for (let column = 0; column < columns; column++) {
    const to = out + column * outRow;
    for (let row = 0; row < rows; row++) f[to + row] = f[from + row * fromRow + column]! * scale;
  }
}
