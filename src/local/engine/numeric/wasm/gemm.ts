import { op, type Code, type WasmFunction } from './assembler.js';

const [M, N, K, A, A_ROW, A_COLUMN, B, B_ROW, B_COLUMN, C, C_ROW, ACCUMULATE] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
] as const;
const PARAMETERS = 12;
/** i32 locals after the parameters. */
const [I, J, STEP, B_AT, C_AT, A_AT] = [12, 13, 14, 15, 16, 17] as const;
const MAX_ROWS = 4;
const MAX_ACCUMULATORS = 8;
const INTEGERS = 5 + MAX_ROWS;
const VECTOR = PARAMETERS + INTEGERS;
const MAX_B = 4;

const stepBy = (local: number, by: number): Code => [...op.get(local), ...op.i32(by), ...op.add, ...op.set(local)];
const fits = (local: number, by: number, limit: number): Code => [
  ...op.get(local),
  ...op.i32(by),
  ...op.add,
  ...op.get(limit),
  ...op.le,
];

/** sum += scalar · vector. */
const multiplyAdd = (sum: number, scalar: number, vector: number, fused: boolean): Code => [
  ...(fused
    ? [...op.get(scalar), ...op.get(vector), ...op.get(sum), ...op.vectorMulAdd]
    : [...op.get(sum), ...op.get(scalar), ...op.get(vector), ...op.vectorMul, ...op.vectorAdd]),
  ...op.set(sum),
];

/**
 * C[rows × 4·vectors] at (I, J). Every element of C is the sum over k of a·b taken in the order of k, whatever the
 * block it falls in: the result for a row does not depend on how many rows are computed together.
 */
function block(rows: number, vectors: number, fused: boolean): Code {
  const accumulator = (row: number, column: number) => VECTOR + MAX_B + row * vectors + column;
  const bVector = (column: number) => VECTOR + column;
  const code: number[] = [];
  for (let row = 0; row < rows; row++) {
    const start =
      row === 0
        ? [...op.get(A), ...op.get(I), ...op.get(A_ROW), ...op.mul]
        : [...op.get(A_AT + row - 1), ...op.get(A_ROW)];
    code.push(...start, ...op.add, ...op.set(A_AT + row));
    for (let column = 0; column < vectors; column++) code.push(...op.zero, ...op.set(accumulator(row, column)));
  }
  code.push(
    ...op.get(B),
    ...op.get(J),
    ...op.get(B_COLUMN),
    ...op.mul,
    ...op.add,
    ...op.set(B_AT),
    ...op.i32(0),
    ...op.set(STEP),
  );

  const inner: number[] = [];
  for (let column = 0; column < vectors; column++)
    inner.push(...op.get(B_AT), ...op.load(16 * column), ...op.set(bVector(column)));
  for (let row = 0; row < rows; row++) {
    const scalar = VECTOR + MAX_B + MAX_ACCUMULATORS;
    inner.push(...op.get(A_AT + row), ...op.loadSplat(0), ...op.set(scalar));
    for (let column = 0; column < vectors; column++)
      inner.push(...multiplyAdd(accumulator(row, column), scalar, bVector(column), fused));
    inner.push(...op.get(A_AT + row), ...op.get(A_COLUMN), ...op.add, ...op.set(A_AT + row));
  }
  inner.push(...op.get(B_AT), ...op.get(B_ROW), ...op.add, ...op.set(B_AT), ...stepBy(STEP, 1));
  code.push(...op.while([...op.get(STEP), ...op.get(K), ...op.lt], inner));

  code.push(...op.get(C), ...op.get(I), ...op.get(C_ROW), ...op.mul, ...op.add);
  code.push(...op.get(J), ...op.i32(4), ...op.mul, ...op.add, ...op.set(C_AT));
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < vectors; column++) {
      const sum = accumulator(row, column);
      code.push(
        ...op.get(ACCUMULATE),
        ...op.if([...op.get(C_AT), ...op.load(16 * column), ...op.get(sum), ...op.vectorAdd, ...op.set(sum)]),
      );
      code.push(...op.get(C_AT), ...op.get(sum), ...op.store(16 * column));
    }
    if (row < rows - 1) code.push(...op.get(C_AT), ...op.get(C_ROW), ...op.add, ...op.set(C_AT));
  }
  return code;
}

/** All rows of a strip of columns: blocks of four rows, then single ones. */
const strip = (vectors: number, fused: boolean): Code => [
  ...op.i32(0),
  ...op.set(I),
  ...op.while(fits(I, 4, M), [...block(4, vectors, fused), ...stepBy(I, 4)]),
  ...op.while(fits(I, 1, M), [...block(1, vectors, fused), ...stepBy(I, 1)]),
];

/**
 * `gemm(m, n, k, a, aRow, aColumn, b, bRow, bColumn, c, cRow, accumulate)`: C = A·B, or C += A·B. Pointers and strides are in
 * bytes; n must be a multiple of 4; C is contiguous along its columns. A may be transposed by swapping its strides, since its
 * elements are read one at a time. B is read eight columns at a time, from `b + j · bColumn` for the columns from j on: 4 where its
 * rows lie one after the other, or 4·k where it is cut into panels of eight columns, each with all its rows.
 */
const product = (name: string, fused: boolean): WasmFunction => ({
  name,
  parameters: new Array<'i32'>(PARAMETERS).fill('i32'),
  integers: INTEGERS,
  vectors: MAX_B + MAX_ACCUMULATORS + 1,
  body: [
    ...op.i32(0),
    ...op.set(J),
    ...op.while(fits(J, 8, N), [...strip(2, fused), ...stepBy(J, 8)]),
    ...op.while(fits(J, 4, N), [...strip(1, fused), ...stepBy(J, 4)]),
  ],
});

export const gemm = product('gemm', false);
/** As {@link gemm}, each product and sum rounded once. */
export const fusedGemm = product('fusedGemm', true);
